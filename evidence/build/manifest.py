"""manifest.json: what the package is, what ran, and what is not claimed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from evidence import __version__, records
from evidence.build.runs import Json
from evidence.campaign import Campaign

BOUNDARIES = {
    "not-release-qualification": "Not a qualification of any release of an engine, a model or a gateway.",
    "not-optimum": "Not an optimum and not a ranking: the settings compared are those named here, on the hardware named here.",
    "not-sla": "Not a service level: nothing is said about availability, long contexts, or load beyond the protocol.",
    "not-model-maximum": "Context lengths and output budgets are choices of the campaign, not maximums of a model.",
    "snapshot-not-peak": "A memory snapshot is taken after the native warm-ups and before the round-robin ones; it is neither the "
    "peak while requests run nor a long idle measurement.",
    "one-prefill-only": "Exact traffic that engaged a single prefill worker shows engagement and no benefit of selecting one.",
}
NOT_GPU = (
    "Rows marked synthetic were made with this project's own deterministic server. They show that the recording and the "
    "arithmetic work and are no result of any GPU, engine or model."
)


@dataclass
class Facts:
    """What the packing of runs brought to light and the manifest repeats."""

    counts: dict[str, int] = field(default_factory=dict)
    synthetic: list[bool] = field(default_factory=list)
    identities: dict[str, Json] = field(default_factory=dict)
    gateways: list[records.Gateway] = field(default_factory=list)
    started: list[str] = field(default_factory=list)
    ended: list[str] = field(default_factory=list)


def build(
    campaign: Campaign,
    facts: Facts,
    *,
    archive: str,
    preparation: bool,
    proxy_sha256: str,
    registries: Mapping[str, str],
) -> records.Manifest:
    """The manifest of one package."""
    synthetic = _synthetic(campaign, facts)
    boundaries = [records.Boundary(name, text) for name, text in BOUNDARIES.items()]
    if synthetic != "none":
        boundaries.append(records.Boundary("not-gpu-result", NOT_GPU))
    boundaries += [
        records.Boundary(f"limitation-{number}", text) for number, text in enumerate(campaign.limitations, start=1)
    ]
    return records.Manifest(
        campaign=campaign.name,
        title=campaign.title,
        status="IN_PROGRESS_NOT_FINAL" if preparation else campaign.status,
        distribution=records.Distribution(archive=archive, top_folder=campaign.name, preparation=preparation),
        synthetic=synthetic,
        statement=_statement(campaign, synthetic, preparation),
        engines=[_engine(campaign, name, facts, registries) for name in sorted(campaign.engines)],
        gateways=_gateways(campaign, facts.gateways),
        boundaries=boundaries,
        privacy_exceptions=[
            records.PrivacyException(one.pattern, one.kind, one.reason) for one in campaign.privacy_exceptions
        ],
        counts=records.ManifestCounts(**facts.counts),
        builder=records.Builder("evidence", __version__),
        proxy_sha256=proxy_sha256,
        dates=records.Dates(
            first_run_started_at=min(facts.started, default=None), last_run_ended_at=max(facts.ended, default=None)
        ),
    )


def _synthetic(campaign: Campaign, facts: Facts) -> str:
    marks = facts.synthetic or [engine.adapter == "synthetic" for engine in campaign.engines.values()]
    return "all" if marks and all(marks) else "some" if any(marks) else "none"


def _statement(campaign: Campaign, synthetic: str, preparation: bool) -> str:
    text = f"What was captured for the campaign {campaign.name}, with the bytes, receipts and times that bear it."
    if synthetic == "all":
        text += " Every run used the synthetic engine: nothing here is a result of a GPU, an engine or a model."
    elif synthetic == "some":
        text += " Rows marked synthetic used the synthetic engine and are no result of a GPU, an engine or a model."
    if preparation:
        text += " This is a preparation artifact of an unfinished campaign, not its delivery."
    return text


def _engine(campaign: Campaign, name: str, facts: Facts, registries: Mapping[str, str]) -> records.ManifestEngine:
    spec = campaign.engines[name]
    seen = facts.identities.get(name)
    declared: Sequence[Mapping[str, str | None]] = [
        {"name": one.name, "value": one.value, "sha256": one.sha256} for one in spec.identity
    ]
    reported = seen is not None and seen.get("source", "reported") == "reported" and bool(seen.get("version"))
    rows = list(seen["identity"]) if seen is not None and seen.get("identity") else []
    rows += [one for one in declared if one["name"] not in {row["name"] for row in rows}]
    return records.ManifestEngine(
        id=name,
        adapter=spec.adapter,
        version=str(seen["version"]) if reported and seen is not None else spec.version,
        synthetic=spec.adapter == "synthetic",
        registry=registries.get(name),
        identity=[records.EngineIdentity(str(row["name"]), str(row["value"]), row.get("sha256")) for row in rows],
        source="reported" if reported else "declared",
    )


def _gateways(campaign: Campaign, seen: Sequence[records.Gateway]) -> list[records.ManifestGateway]:
    found: dict[tuple[str, str, str | None], records.ManifestGateway] = {}
    spec = campaign.gateway
    for gateway in seen:
        commit = spec.source_commit if spec is not None and gateway.kind != "built-in" else None
        digest = gateway.sha256 or (spec.sha256 if spec is not None and gateway.kind != "built-in" else None)
        reasons = [gateway.reason, spec.reason if spec is not None and gateway.kind != "built-in" else None]
        if commit is None and not any(reasons):
            reasons.append(
                "a part of this project; its file is identified by hash, no source commit was recorded"
                if gateway.kind == "built-in"
                else "the source commit was not established"
            )
        reason = "; ".join(text for text in reasons if text) or None
        found[gateway.kind, gateway.name, digest] = records.ManifestGateway(
            gateway.kind, gateway.name, digest, commit, reason
        )
    return [found[key] for key in sorted(found, key=str)]

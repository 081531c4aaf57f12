"""Turns the events of a run into the records of the package: launches, arms, samples, snapshots, the gateway."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import itemgetter
from typing import Any, TypeVar

import orjson

from evidence import records
from evidence.build import classify
from evidence.build.runs import EMPTY, Json, Run, Store
from evidence.campaign import Campaign, Comparison, EngineSpec
from evidence.capture.adapters import ADAPTERS, hide_private
from evidence.errors import EvidenceError

Record = TypeVar("Record")


@functools.cache
def _values(kind: type) -> Callable[[Json], tuple[Any, ...]]:
    """What takes the values of a record's fields, in their order, out of a row with its keys."""
    keys = [key for key in records.keys(kind) if key != "schemaVersion"]  # which is the last, and fixed
    return itemgetter(*keys) if len(keys) > 1 else lambda row: (row[keys[0]],)


def filled(kind: type[Record], row: Json, where: str, **more: Any) -> Record:
    """A record from the keys of an event, with `more` instead of some; refused when one is missing."""
    shape: type = kind
    try:
        return kind(*_values(shape)({**row, **{records.key(name): value for name, value in more.items()}}))
    except KeyError as missing:
        raise EvidenceError(
            f"{where}: found no {missing.args[0]} in the event {row.get('event', '?')}", code=1
        ) from None


def launches(events: Iterable[Json], where: str) -> list[records.Launch]:
    """One launch a started engine, with the exchange that proved it ready where there was one."""
    started: dict[str, Json] = {}
    ready: dict[str, records.Ready] = {}
    for event in events:
        if event["event"] == "engine-started":
            started[event["worker"]] = event
        elif event["event"] == "engine-ready":
            ready[event["worker"]] = filled(records.Ready, event, where)
    # Hidden once more: a run that an older runner recorded may name folders that this one would not.
    return [
        filled(
            records.Launch,
            event,
            where,
            ready=ready.get(worker),
            environment={name: hide_private(value) for name, value in event["environment"].items()},
        )
        for worker, event in sorted(started.items())
    ]


def gateway(run: Run) -> records.Gateway | None:
    """The gateway as the run saw it; null before it was ready."""
    event = run.last("gateway-ready")
    return None if event is None else filled(records.Gateway, event, run.id)


def workers(run: Run, count: int) -> list[records.Worker]:
    """Aliases of workers and devices; which worker stood on which device comes from the snapshots."""
    devices = {f"worker-{n}": f"device-{n}" for n in range(1, count + 1)}
    for event in run.all("snapshot"):
        devices |= {row["worker"]: row["device"] for row in event["devices"]}
    return [records.Worker(alias, device) for alias, device in sorted(devices.items())]


def arm_id(repetition: int, arm: str) -> str:
    """(1, "A") -> `r1-a`."""
    return f"r{repetition}-{arm.lower()}"


def arms(run: Run) -> list[records.Arm]:
    """The arms that were begun, in order; what was not reached is null."""
    found: list[records.Arm] = []
    for started, events in _by_arm(run):
        ended = _one(events, "arm-ended")
        client, timeline = _one(events, "client"), _one(events, "timeline")
        findings = [event for event in events if event["event"] == "log-finding"]
        found.append(
            records.Arm(
                repetition=started["repetition"],
                arm=started["arm"],
                sequence=started["sequence"],
                started_at=started["startedAt"],
                wall_seconds=None if ended is None else ended["wallSeconds"],
                launches=launches(events, run.id),
                timeline=None if timeline is None else filled(records.Timeline, timeline, run.id),
                client=None if client is None else filled(records.Client, client, run.id),
                log_findings=[filled(records.LogFinding, finding, run.id) for finding in findings],
            )
        )
    return found


def _by_arm(run: Run) -> list[tuple[Json, list[Json]]]:
    found: list[tuple[Json, list[Json]]] = []
    for event in run.events:
        if event["event"] == "arm-started":
            found.append((event, []))
        elif found:
            found[-1][1].append(event)
    return found


def _one(events: Sequence[Json], name: str) -> Json | None:
    return next((event for event in reversed(events) if event["event"] == name), None)


def snapshots(run: Run) -> list[records.Snapshot]:
    return [
        filled(
            records.Snapshot,
            event,
            run.id,
            devices=[filled(records.DeviceMemory, row, run.id) for row in event["devices"]],
        )
        for event in run.all("snapshot")
    ]


def samples(
    run: Run,
    store: Store,
    engine: EngineSpec,
    ledgers: Mapping[tuple[str, str], Sequence[records.Receipt]],
) -> list[records.Sample]:
    """Every sample with what its stored bytes say, in the order in which the requests were offered.

    The worker of a routed sample is the one whose ledger has a receipt with its id.
    """
    served = {
        receipt.request_id: worker
        for (_, worker), receipts in ledgers.items()
        for receipt in receipts
        if receipt.traffic and receipt.request_id is not None
    }
    offers = {event["offer"]: event for event in run.all("offer")}
    order = {offer: place for place, offer in enumerate(offers)}
    shapes: dict[str, classify.RequestShape] = {}
    owes_done = ADAPTERS[engine.adapter].owes_done
    found = []
    for event in run.all("sample"):
        asked = event["requestSha256"]
        if asked not in shapes:
            shapes[asked] = classify.read_request(store.take(asked) or b"")
        body = store.take(event["responseSha256"])
        reading = classify.classify(
            event["transport"], event["status"], shapes[asked], body or b"", owes_done=owes_done
        )
        found.append(
            filled(
                records.Sample,
                event,
                run.id,
                worker=event.get("worker") or served.get(event["offer"]),
                classification=reading.classification,
                finish_reason=reading.finish_reason,
                prompt_tokens=reading.prompt_tokens,
                completion_tokens=reading.completion_tokens,
            )
        )
    return sorted(found, key=lambda sample: order.get(sample.offer, len(order)))


def head(run: Run, campaign: Campaign) -> dict[str, Any]:
    """What a comparison's record says of its campaign and case, by field: the same whether the run was complete or not."""
    comparison = campaign.comparisons[run.name]
    case = campaign.cases[comparison.case]
    fixed, protocol = requests(comparison)
    return {
        "case": case.id,
        "run": run.id,
        "campaign": campaign.name,
        "profile": case.profile,
        "engine": case.engine,
        "topology": case.topology,
        "surface": case.surface,
        "kind": comparison.kind,
        "synthetic": campaign.engines[case.engine].adapter == "synthetic",
        "setting": records.Setting(comparison.argument, comparison.baseline, comparison.candidate),
        "protocol": protocol,
        "requests": fixed,
        "workers": workers(run, 2),
        "date_control": date_control(run, comparison),
    }


def requests(comparison: Comparison) -> tuple[records.Requests, records.Protocol]:
    """The two fixed bodies by hash, and the protocol with what the main body fixes."""
    main = orjson.loads(comparison.body)
    return (
        records.Requests(native=_body(comparison.native_body), main=_body(comparison.body)),
        records.Protocol(
            temperature=main["temperature"], output_budget=main["max_tokens"], stream=main.get("stream") is True
        ),
    )


def _body(data: bytes) -> records.Body:
    return records.Body(hashlib.sha256(data).hexdigest(), len(data))


def date_control(run: Run, comparison: Comparison) -> records.DateControl | None:
    """What the runner read of the rendered input on each worker and arm, for a date-sensitive comparison."""
    if comparison.comparison_date is None:
        return None
    ids = [
        filled(records.TokenIds, event, run.id)
        for event in run.all("token-ids")
        if event.get("tokenIdsSha256") is not None
    ]
    return records.DateControl("UTC", comparison.comparison_date, ids)


def cite_bodies(store: Store, launched: Iterable[records.Launch], ledgers: Iterable[Sequence[records.Receipt]]) -> None:
    """Have every body packed that a ready probe or a receipt names."""
    for launch in launched:
        if launch.ready is not None:
            store.cite(launch.ready.request_sha256)
            store.cite(launch.ready.response_sha256)
    for receipts in ledgers:
        for receipt in receipts:
            for digest in (receipt.request_sha256, receipt.response_sha256):
                if digest != EMPTY or digest in store.owners:
                    store.cite(digest)


def identity_of(run: Run, campaign: Campaign) -> list[Json]:
    """The `identity` events of a run: which engine it met, as reported or declared."""
    found = [event for event in run.all("identity") if event["engine"] in campaign.engines]
    for event in found:
        for fact in event["identity"]:
            filled(records.EngineIdentity, fact, run.id)
    return found

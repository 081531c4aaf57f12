"""Candidate registries: one folder an engine version, with the original probes and their expected token ids.

A candidate is a plan. That it stands here says nothing about whether it ran, and it promotes nothing.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import orjson

from evidence import records
from evidence.build.tree import Tree
from evidence.campaign import Campaign, EngineSpec
from evidence.errors import EvidenceError

KEYS = {"image", "imageDigest", "candidates"}


def pack(campaign: Campaign, tree: Tree) -> dict[str, str]:
    """registry-<engine>/ for every engine that has candidates or probes; engine -> folder."""
    found = {}
    for engine in campaign.engines.values():
        probes = _probes(campaign, engine)
        if engine.registry is None and not probes:
            continue
        folder = f"registry-{engine.id}"
        source = _candidates(campaign, engine)
        rows = []
        for profile, data in sorted(probes.items()):
            path = f"probes/{profile}.json"
            tree.add(f"{folder}/{path}", data)
            ids = _token_ids(f"{folder}/{path}", data)
            rows.append(
                records.Probe(profile, f"{folder}/{path}", hashlib.sha256(data).hexdigest(), ids, hash_token_ids(ids))
            )
        candidates = [
            records.Candidate(row["profile"], row["state"], row["arguments"], row["note"])
            for row in source.get("candidates", [])
        ]
        record = records.Registry(
            engine=engine.id,
            adapter=engine.adapter,
            version=engine.version,
            image=source.get("image"),
            image_digest=source.get("imageDigest"),
            candidates=candidates,
            probes=rows,
        )
        tree.add(f"{folder}/manifest.json", records.to_bytes(record))
        found[engine.id] = folder
    return found


def _token_ids(place: str, data: bytes) -> list[int]:
    """The token ids that a probe expects. Raises EvidenceError."""
    try:
        ids = orjson.loads(data)["expectedTokenIds"]
    except (orjson.JSONDecodeError, KeyError, TypeError):
        ids = None
    if not isinstance(ids, list) or not all(type(one) is int and one >= 0 for one in ids):
        raise EvidenceError(f"{place}: found no expectedTokenIds, expected a probe with a list of token ids")
    return ids


def hash_token_ids(ids: list[int]) -> str:
    """SHA-256 of the ids as compact JSON, `[1,2,3]`."""
    return hashlib.sha256(orjson.dumps(ids)).hexdigest()


def _probes(campaign: Campaign, engine: EngineSpec) -> dict[str, bytes]:
    """Profile -> original probe bytes, from the engine's cases and from its registry folder."""
    found = {
        case.profile: case.probe.file.read()
        for case in campaign.cases.values()
        if case.engine == engine.id and case.probe is not None
    }
    if engine.registry is not None:
        for path in sorted((campaign.folder / engine.registry / "probes").glob("*.json")):
            if path.stem in campaign.profiles and path.stem not in found:
                found[path.stem] = path.read_bytes()
    return found


def _candidates(campaign: Campaign, engine: EngineSpec) -> dict[str, Any]:
    """candidates.json of the campaign's registry folder: image, imageDigest and candidates; {} without a folder."""
    if engine.registry is None:
        return {}
    path: Path = campaign.folder / engine.registry / "candidates.json"
    try:
        content = orjson.loads(path.read_bytes())
    except FileNotFoundError:
        return {}
    except orjson.JSONDecodeError as error:
        raise EvidenceError(f"{path}: found no JSON ({error}), expected image, imageDigest and candidates") from None
    if not isinstance(content, dict) or not set(content) <= KEYS:
        odd = sorted(set(content) - KEYS) if isinstance(content, dict) else [type(content).__name__]
        raise EvidenceError(f"{path}: found {', '.join(odd)}, expected an object with {', '.join(sorted(KEYS))}")
    rows = content.get("candidates", [])
    for row in rows if isinstance(rows, list) else [rows]:
        wrong = not isinstance(row, dict) or set(row) != {"profile", "state", "arguments", "note"}
        if (
            wrong
            or row["profile"] not in list(campaign.profiles)
            or row["state"] not in ("CANDIDATE", "EXCLUDED")
            or not isinstance(row["arguments"], list)
        ):
            raise EvidenceError(
                f"{path}: found the candidate {row!r:.120}, expected profile, state CANDIDATE or EXCLUDED, arguments and note",
                "a registry names profiles of the campaign and promotes none",
            )
    return content

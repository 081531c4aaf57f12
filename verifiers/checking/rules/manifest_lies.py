"""Lies in manifest.json and in the guide that begins with it."""

from __future__ import annotations

import re
from typing import Any, Callable, Optional

from checking.damage import Bench
from checking.rules.manifest import NAME, PROXY, README, SYNTHETIC

Lie = Callable[[Bench], Optional[str]]


def _readme(change: Callable[[bytes, Any], bytes]) -> Lie:
    def damage(bench: Bench) -> Optional[str]:
        data = bench.read(README) if bench.has(README) else b""
        new = change(data, bench.load(NAME))
        if new == data:
            return None
        bench.put(README, new)
        return README

    return damage


def _more_complete(data: bytes, manifest: Any) -> bytes:
    told = manifest["counts"]["comparisons"]
    return data.replace(b"%d complete" % told, b"%d complete" % (told + 6), 1)


def _other_archive(data: bytes, manifest: Any) -> bytes:
    return data.replace(manifest["distribution"]["archive"].encode(), b"another-evaluation.tgz")


def _set(*steps: Any) -> Lie:
    """A lie that sets one value of the manifest: the steps to it, then the value."""

    def damage(bench: Bench) -> str:
        with bench.edit(NAME) as data:
            spot = data
            for step in steps[:-2]:
                spot = spot[step]
            spot[steps[-2]] = steps[-1]
        return NAME + "#/" + "/".join(map(str, steps[:-1]))

    return damage


def _change(change: Any) -> Lie:
    def damage(bench: Bench) -> Optional[str]:
        with bench.edit(NAME) as data:
            return None if change(data) is False else NAME

    return damage


def _drop_boundary(data: Any) -> None:
    data["boundaries"] = [one for one in data["boundaries"] if one["id"] != "not-sla"] or [
        {"id": "not-optimum", "statement": "x"}
    ]


def _add_boundary(data: Any) -> None:
    data["boundaries"].append({"id": "limitation-99", "statement": "x"})


def _deny_synthetic(data: Any) -> Any:
    if data["synthetic"] == "none":
        return False
    data["synthetic"] = "none"
    data["boundaries"] = [one for one in data["boundaries"] if one["id"] != SYNTHETIC]
    return True


def _claim_gpu(data: Any) -> Any:
    made = [one for one in data["engines"] if one["synthetic"]]
    if not made:
        return False
    made[0]["synthetic"] = False
    return True


def other_recorder(bench: Bench) -> Optional[str]:
    if not bench.has(PROXY):
        return None
    bench.put(PROXY, bench.read(PROXY) + b"# one line more\n")
    return PROXY


def _later(data: Any) -> Any:
    if data["dates"]["firstRunStartedAt"] is None:
        return False
    data["dates"]["firstRunStartedAt"] = "2099-01-01T00:00:00.000000Z"
    return True


def _flip_preparation(data: Any) -> None:
    data["distribution"]["preparation"] = not data["distribution"]["preparation"]


def _gateway_lie(change: Any) -> Lie:
    def apply(data: Any) -> Any:
        if not data["gateways"]:
            return False
        change(data["gateways"])
        return True

    return _change(apply)


def other_case(bench: Bench) -> Optional[str]:
    """Let a comparison cite a case that goes straight to a worker."""
    native = next(
        (row["case"] for row in bench.load("runtime-matrix.json")["rows"] if row["surface"] == "native"), None
    )
    made = bench.folders("results/settings")
    if native is None or not made:
        return None
    with bench.edit(made[0] + "/comparison.json") as data:
        data["case"] = native
    with bench.edit("results/settings-index.json") as data:
        for row in data["comparisons"]:
            if row["folder"] == made[0]:
                row["case"] = native
    return made[0]


def _rename_engine(data: Any) -> Any:
    if not data["engines"]:
        return False
    data["engines"][0]["id"] = "another-engine"
    return True


def _service_levels_out(data: bytes, manifest: Any) -> bytes:
    told = next(one["statement"] for one in manifest["boundaries"] if one["id"] == "not-sla")
    return re.sub(b"(?m)^[*] %s\n" % re.escape(told).encode(), b"", data)


more_comparisons = _set("counts", "comparisons", 999)
more_bodies = _set("counts", "bodies", 10**6)
no_profiles = _set("counts", "profiles", 0)
drop_boundary = _change(_drop_boundary)
add_boundary = _change(_add_boundary)
deny_synthetic = _change(_deny_synthetic)
claim_gpu = _change(_claim_gpu)
rename_engine = _change(_rename_engine)
flip_preparation = _change(_flip_preparation)
rename_campaign = _set("campaign", "another-campaign")
begin_later = _change(_later)
drop_gateway = _gateway_lie(lambda rows: rows.pop())
other_gateway_hash = _gateway_lie(lambda rows: rows[0].update(sha256="0" * 64))
unused_gateway = _gateway_lie(lambda rows: rows.append(dict(rows[0], name="another")))
more_complete = _readme(_more_complete)
empty_guide = _readme(lambda data, manifest: b"# A package\n")
shorten_guide = _readme(_service_levels_out)
other_archive = _readme(_other_archive)

"""Lies in the raw evidence of a record: one retained file altered, and the hashes of its bundle made true again."""

from __future__ import annotations

import hashlib
from typing import Any, Callable, Dict, Optional

from checking.damage import Bench, written_json
from checking.reading import read_json
from checking.rules.lifecycle import ROOM, SINGLE
from checking.rules.lifecycle_raw import keys_of
from checking.rules.lifecycle_record import experiments

Lie = Callable[[Bench], Optional[str]]


def _reseal(bench: Bench, record: Dict[str, Any], experiment: Dict[str, Any]) -> None:
    """Make every hash of an experiment's bundle true again."""
    found = keys_of(bench.below(ROOM), experiment["id"])
    if "raw_bundle" in found:
        others = {
            name.rsplit("/", 1)[1]: hashlib.sha256(bench.read(name)).hexdigest()
            for name in found.values()
            if name != found["raw_bundle"]
        }
        bench.put(found["raw_bundle"], "".join("%s  %s\n" % (others[one], one) for one in sorted(others)).encode())
    for key in experiment["retained_evidence_sha256"]:
        if key in found:
            experiment["retained_evidence_sha256"][key] = hashlib.sha256(bench.read(found[key])).hexdigest()
    if "source_manifest_file" in found and "source_manifest_file_sha256" in experiment["source"]:
        experiment["source"]["source_manifest_file_sha256"] = experiment["retained_evidence_sha256"][
            "source_manifest_file"
        ]
    bench.store(SINGLE, record)


def _on_bundle(key: str, change: Callable[[bytes], Optional[bytes]], reseal: bool = True) -> Lie:
    """Alter one retained file; afterwards the hashes of the bundle are true again, or not."""

    def damage(bench: Bench) -> Optional[str]:
        if not bench.has(SINGLE):
            return None
        record = bench.load(SINGLE)
        for _, experiment in experiments(record):
            path = keys_of(bench.below(ROOM), experiment["id"]).get(key)
            if path is None or (key == "raw_events" and experiment["source"].get("harness") != "evidence.lifecycle"):
                continue
            made = change(bench.read(path))
            if made is None:
                bench.remove(path)
            else:
                bench.put(path, made)
            if reseal:
                _reseal(bench, record, experiment)
            return path
        return None

    return damage


def _raise_time(data: bytes) -> bytes:
    """Move the first response half a second behind the last event."""
    lines = data.split(b"\n")
    last = read_json(lines[-2])["t"]
    event = read_json(lines[2])
    event["t"] = last + 1
    lines[2] = " ".join(written_json(event).split()).encode()
    return b"\n".join(lines)


def _other_figure(data: bytes) -> bytes:
    """Enlarge the device in its first listing, or change the status of the undeclared adapter."""
    lines = data.split(b"\n")
    for number, line in enumerate(lines):
        if b'"event":"listing"' in line:
            event = read_json(line)
            event["total_bytes"] += 4096
            lines[number] = " ".join(written_json(event).split()).encode()
            return b"\n".join(lines)
        if b'"event":"undeclared"' in line:
            event = read_json(line)
            event["status"] += 1
            lines[number] = " ".join(written_json(event).split()).encode()
            return b"\n".join(lines)
    return data


def _fewer_sources(data: bytes) -> bytes:
    files = read_json(data)
    files.pop(sorted(files)[0])
    return (written_json(files) + "\n").encode()


def _other_report(data: bytes) -> bytes:
    report = read_json(data)
    report["audit"] = [["PIN_LOST", "once"]]
    return (written_json(report) + "\n").encode()


add_byte_to_raw_events = _on_bundle("raw_events", lambda data: data + b"\n", reseal=False)
take_report_away = _on_bundle("report", lambda _: None, reseal=False)
leave_source_out_of_manifest = _on_bundle("source_manifest_file", _fewer_sources)
list_nothing_in_bundle = _on_bundle("raw_bundle", lambda _: b"", reseal=False)
let_time_go_back = _on_bundle("raw_events", _raise_time)
cut_last_event_off = _on_bundle("raw_events", lambda data: b"\n".join(data.split(b"\n")[:-2]) + b"\n")
alter_one_raw_event_and_make_every_hash_true_again = _on_bundle("raw_events", _other_figure)
confess_fault_in_report = _on_bundle("report", _other_report)

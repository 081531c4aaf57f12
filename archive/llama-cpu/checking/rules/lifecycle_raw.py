"""The raw evidence of a record, where it is given: hashes of the retained files, and every figure derived again.

A retained file of the key K lies at `evidence/<experiment>/K.<anything>`. An experiment without a folder has no
bundle here, and its hashes are only declared.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any, Dict, Iterator, List, Optional, Sequence, Tuple

from checking.check import Check, Complaint, Mutation
from checking.damage import Bench, written_json
from checking.reading import JsonFault, read_json
from checking.rules.lifecycle_damage import SINGLE
from checking.rules.lifecycle_derive import derive
from checking.rules.lifecycle_events import EventsFault, read_raw
from checking.rules.lifecycle_record import experiments, kind_of
from checking.rules.lifecycle_shape import is_number, pointer, show

ROOM = "evidence"
NEEDS = ("lifecycle-schema",)


def keys_of(names: Sequence[str], experiment: str) -> Dict[str, str]:
    """Key -> name of the retained files of an experiment (the part of a file's name before its first dot)."""
    prefix = "%s/%s/" % (ROOM, experiment)
    return {name[len(prefix) :].split(".", 1)[0]: name for name in names if name.startswith(prefix)}


def _bundles(subject: Any) -> Iterator[Tuple[str, Dict[str, Any], Dict[str, str]]]:
    names = subject.view.below(ROOM)
    for place, experiment in experiments(subject.record):
        found = keys_of(names, experiment["id"])
        if found:
            yield place, experiment, found


def hold_hashes(subject: Any) -> Iterator[Complaint]:
    """Every retained file has the hash that the record gives for it."""
    for place, experiment, found in _bundles(subject):
        for key, digest in experiment["retained_evidence_sha256"].items():
            if key in found and subject.view.digest(found[key]) != digest:
                yield (
                    "%s#%s" % (subject.name, pointer(place + "/retained_evidence_sha256", key)),
                    digest,
                    "%s, the SHA-256 of %s" % (subject.view.digest(found[key]), found[key]),
                )


def hold_files(subject: Any) -> Iterator[Complaint]:
    """A given bundle holds every retained file, and nothing that the record does not name."""
    known = {experiment["id"] for _, experiment in experiments(subject.record)}
    for name in subject.view.below(ROOM):
        if name.split("/")[1] not in known or name.count("/") != 2:
            yield name, "a file of no experiment", "evidence/<experiment>/<key>.*"
    for place, experiment, found in _bundles(subject):
        for key in sorted(set(experiment["retained_evidence_sha256"]) ^ set(found)):
            where = "%s#%s" % (subject.name, pointer(place + "/retained_evidence_sha256", key))
            yield where, "no file" if key not in found else "no hash of " + found[key], "a file and its hash"


def hold_manifest(subject: Any) -> Iterator[Complaint]:
    """The digest of the source map and the number of its files are those of the retained manifest."""
    for place, experiment, found in _bundles(subject):
        source = experiment["source"]
        if "source_manifest_file" not in found or "source_content_digest_sha256" not in source:
            continue
        name = found["source_manifest_file"]
        try:
            files = read_json(subject.view.read(name))
        except JsonFault as fault:
            yield name, fault.found, fault.expected
            continue
        if not isinstance(files, dict) or not all(isinstance(value, str) for value in files.values()):
            yield name, "no map of texts", "path -> SHA-256"
            continue
        digest = hashlib.sha256(json.dumps(files, sort_keys=True).encode()).hexdigest()
        where = "%s#%s/source/" % (subject.name, place)
        if digest != source["source_content_digest_sha256"]:
            yield where + "source_content_digest_sha256", source["source_content_digest_sha256"], digest
        if len(files) != source.get("verified_source_files"):
            yield where + "verified_source_files", show(source.get("verified_source_files")), "%d" % len(files)


def hold_bundle(subject: Any) -> Iterator[Complaint]:
    """A raw bundle in the form of sha256sum lists exactly the other retained files, each with its hash."""
    for _, _, found in _bundles(subject):
        name = found.get("raw_bundle", "")
        if not name.endswith(".sha256"):
            continue
        others = {other.rsplit("/", 1)[1]: subject.view.digest(other) for other in found.values() if other != name}
        expected = "".join("%s  %s\n" % (others[one], one) for one in sorted(others))
        if subject.view.read(name) != expected.encode():
            yield name, "other lines", "a line for each of %s" % ", ".join(sorted(others))


def own_events(subject: Any) -> Iterator[Tuple[str, Dict[str, Any], str]]:
    """(pointer, experiment, name of its raw events) of the experiments that this project's harness ran."""
    for place, experiment, found in _bundles(subject):
        if experiment["source"].get("harness") == "evidence.lifecycle" and "raw_events" in found:
            yield place, experiment, found["raw_events"]


def hold_form(subject: Any) -> Iterator[Complaint]:
    """Raw events are whole lines of strict JSON with times that never go back, from run-started to run-ended."""
    for _, experiment, name in own_events(subject):
        try:
            events = read_raw(subject.view.read(name))
            derive(events)
        except EventsFault as fault:
            yield "%s %s" % (name, fault.place), fault.found, fault.expected
            continue
        if events[0]["protocol"] != kind_of(experiment):
            yield name + " line 1", show(events[0]["protocol"]), kind_of(experiment)


def compare(place: str, found: Any, expected: Any) -> Iterator[Tuple[str, str, str]]:
    """Where a part of the record differs from what the events say."""
    if isinstance(expected, dict) and isinstance(found, dict):
        for key, value in expected.items():
            if key not in found:
                yield pointer(place, key), "nothing", show(value)
            else:
                yield from compare(pointer(place, key), found[key], value)
        for key in found:
            if key not in expected and "selected_" in place:
                yield pointer(place, key), show(found[key]), "nothing"
    elif isinstance(expected, list) and isinstance(found, list):
        if len(expected) != len(found):
            yield place, "%d entries" % len(found), "%d" % len(expected)
        for number, (one, other) in enumerate(zip(found, expected)):
            yield from compare(pointer(place, number), one, other)
    elif is_number(found) != is_number(expected) or found != expected:
        yield place, show(found), show(expected)


def hold_figures(subject: Any) -> Iterator[Complaint]:
    """Every figure, sample and event of the record is what its raw events give."""
    for place, experiment, name in own_events(subject):
        for where, found, expected in compare(place, experiment, derive(read_raw(subject.view.read(name)))):
            yield "%s#%s" % (subject.name, where), found, expected + ", by the raw events"


def hold_report(subject: Any) -> Iterator[Complaint]:
    """The retained report names the experiment, has no fault, and repeats the measurements of the record."""
    for place, experiment, found in _bundles(subject):
        if experiment["source"].get("harness") != "evidence.lifecycle" or "report" not in found:
            continue
        try:
            report = read_json(subject.view.read(found["report"]))
        except JsonFault as fault:
            yield found["report"], fault.found, fault.expected
            continue
        expected = {"experiment": experiment["id"], "audit": [], "measurements": experiment["measurements"]}
        if report != expected:
            key = next(
                (key for key in expected if not isinstance(report, dict) or report.get(key) != expected[key]),
                "a key too many",
            )
            yield (
                "%s#/%s" % (found["report"], key),
                "another %s than the record" % key,
                "that of %s#%s" % (subject.name, place),
            )


def checked_places(record: Dict[str, Any], names: Sequence[str], read: Any = None) -> List[str]:
    """JSON pointers of what was held against the given raw evidence."""
    places: List[str] = []
    for place, experiment in experiments(record):
        found = keys_of(names, experiment["id"])
        places += [
            pointer(place + "/retained_evidence_sha256", key)
            for key in experiment["retained_evidence_sha256"]
            if key in found
        ]
        if "source_manifest_file" in found:
            places += [
                place + "/source/" + key
                for key in ("source_content_digest_sha256", "source_manifest_file_sha256", "verified_source_files")
            ]
        if read is not None and "raw_events" in found and experiment["source"].get("harness") == "evidence.lifecycle":
            places += list(_leaves(place, derive(read_raw(read(found["raw_events"])))))
    return places


def _leaves(place: str, value: Any) -> Iterator[str]:
    if isinstance(value, (dict, list)):
        for key, one in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _leaves(pointer(place, key), one)
    else:
        yield place


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


def on_bundle(name: str, key: str, change: Any, reseal: bool = True) -> Mutation:
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

    return Mutation(name, damage)


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


EVIDENCE_CHECKS = (
    Check("lifecycle-evidence-hash", "every retained file has the hash that the record gives for it", hold_hashes, (on_bundle("add a byte to the raw events", "raw_events", lambda data: data + b"\n", reseal=False),), NEEDS),
    Check("lifecycle-evidence-files", "a bundle holds every retained file and no other", hold_files, (on_bundle("take the report away", "report", lambda _: None, reseal=False),), NEEDS),
    Check("lifecycle-evidence-sources", "digest and number of the sources are those of the manifest", hold_manifest, (on_bundle("leave a source out of the manifest", "source_manifest_file", _fewer_sources),), NEEDS),
    Check("lifecycle-evidence-bundle", "the bundle's list names the other files with their hashes", hold_bundle, (on_bundle("list nothing in the bundle", "raw_bundle", lambda _: b"", reseal=False),), NEEDS),
    Check("lifecycle-raw-events", "raw events are whole, in order of time, from start to end", hold_form, (on_bundle("let time go back", "raw_events", _raise_time), on_bundle("cut the last event off", "raw_events", lambda data: b"\n".join(data.split(b"\n")[:-2]) + b"\n")), NEEDS),
    Check("lifecycle-raw-figures", "every figure is what the raw events give", hold_figures, (on_bundle("alter one raw event and make every hash true again", "raw_events", _other_figure),), (*NEEDS, "lifecycle-raw-events")),
    Check("lifecycle-evidence-report", "the report repeats the record", hold_report, (on_bundle("confess a fault in the report", "report", _other_report),), NEEDS),
)  # fmt: skip
RAW_CONTROL = tuple(
    (check.code, check.mutations[0]) for check in EVIDENCE_CHECKS if check.code == "lifecycle-raw-figures"
)

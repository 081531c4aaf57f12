"""The raw evidence of a record, where it is given: hashes of the retained files, and every figure derived again.

A retained file of the key K lies at `evidence/<experiment>/K.<anything>`. An experiment without a folder has no
bundle here, and its hashes are only declared.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any, Dict, Iterator, List, Sequence, Tuple

from checking.check import Complaint
from checking.reading import JsonFault, read_json
from checking.rules.lifecycle import ROOM
from checking.rules.lifecycle_derive import derive
from checking.rules.lifecycle_events import EventsFault, read_raw
from checking.rules.lifecycle_record import experiments, kind_of
from checking.rules.lifecycle_shape import is_number, pointer, show


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

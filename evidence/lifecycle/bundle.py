"""A record and the raw evidence that it retains: one folder an experiment, every file named by its key.

record.json
evidence/<experiment>/raw_events.jsonl           the events as the harness wrote them
evidence/<experiment>/source_manifest_file.json  path -> SHA-256 of the harness's own files when the run began
evidence/<experiment>/report.json                the audit's result and the derived figures
evidence/<experiment>/raw_bundle.sha256          SHA-256 of each of the files above, as sha256sum writes it
"""

from __future__ import annotations

import hashlib
import json
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from evidence.campaign.table import ID
from evidence.errors import EvidenceError
from evidence.inputs import read_input
from evidence.lifecycle.describe import TITLES, describe
from evidence.lifecycle.events import NAME, parse_events
from evidence.lifecycle.summarize import derive

MANIFEST, ABOUT, REPORT, SUMS = "source_manifest_file.json", "about.json", "report.json", "raw_bundle.sha256"
ROOT = Path(__file__).parents[1]
SOURCES = ("lifecycle", "supervisor", "capture")


def digest(data: bytes) -> str:
    """SHA-256 as hex."""
    return hashlib.sha256(data).hexdigest()


def render(value: Any) -> bytes:
    """JSON, sorted, two spaces, one final newline."""
    return json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False, allow_nan=False).encode() + b"\n"


def read_sources() -> dict[str, str]:
    """Path -> SHA-256 of the files that the harness consists of."""
    files = [path for room in SOURCES for path in sorted((ROOT / room).glob("*.py"))]
    return {f"evidence/{path.relative_to(ROOT).as_posix()}": digest(path.read_bytes()) for path in files}


def read_manifest(data: bytes) -> dict[str, Any]:
    """Digest of the content, hash of the file, number of files."""
    sources = json.loads(data)
    return {
        "digest": digest(json.dumps(sources, sort_keys=True).encode()),
        "file_sha256": digest(data),
        "files": len(sources),
    }


def summarize(runs: Sequence[Path], output: Path, title: str = "") -> Path:
    """Write the record of one or more finished runs and its evidence into the new folder `output`.

    Raises EvidenceError when a run bears no record; nothing is written then.
    """
    if output.exists():
        raise EvidenceError(f"{output}: found something there, expected a new folder", "name another --output")
    experiments, files, days, titles = [], dict[str, bytes](), list[str](), list[str]()
    for run in runs:
        hint = "name the folder that a lifecycle run left"
        raw, manifest, told = (
            read_input(run / name, "what a lifecycle run left", hint) for name in (NAME, MANIFEST, ABOUT)
        )
        try:
            about = json.loads(told)
        except (ValueError, RecursionError) as error:
            raise EvidenceError(
                f"{run / ABOUT}: found no JSON ({error}), expected what a lifecycle run left", hint
            ) from None
        events = parse_events(raw, str(run / NAME))
        try:
            if not ID.fullmatch(about["id"]):
                raise ValueError(f"the id {about['id']!r}")
            derived = derive(events)
            experiment = describe(about, events, derived, read_manifest(manifest))
            days.append(str(about["measured_on"]))
            titles.append(TITLES[str(events[0]["protocol"])])
        except (KeyError, TypeError, ValueError, AttributeError, IndexError, StopIteration) as error:
            said = f"nothing at {error}" if isinstance(error, KeyError) else str(error) or type(error).__name__
            raise EvidenceError(
                f"{run}: found {said}, expected what a finished lifecycle run left",
                "a run folder is evidence as it was left; one that was altered bears no record",
                code=1,
            ) from None
        kept = {
            NAME: raw,
            MANIFEST: manifest,
            REPORT: render({"experiment": about["id"], "audit": [], "measurements": experiment["measurements"]}),
        }
        kept[SUMS] = "".join(f"{digest(data)}  {name}\n" for name, data in sorted(kept.items())).encode()
        experiment["retained_evidence_sha256"] = {
            name.partition(".")[0]: digest(data) for name, data in sorted(kept.items())
        }
        files.update({f"evidence/{about['id']}/{name}": data for name, data in kept.items()})
        experiments.append(experiment)
    if len({experiment["id"] for experiment in experiments}) < len(experiments):
        raise EvidenceError("two runs have one id", "give each lifecycle section an id of its own")
    record = {
        "schema_version": 1,
        "title": title or "; ".join(dict.fromkeys(titles)),
        "measured_on": max(days),
        "repository": "evidence",
        "scope": "Observations of one development version of the harness and of the named engines; not a release, deployment, quality, throughput or reliability guarantee.",
        "artifact_kind": "Sanitized selected measurements and lifecycle observations, derived from the raw events that are retained beside this record.",
        "experiments": experiments,
        "integrity_note": "The SHA-256 values identify the retained originals; verify-lifecycle.py --evidence derives the figures again from them.",
    }
    write_whole(output, {"record.json": render(record), **files})
    return output / "record.json"


def write_whole(output: Path, files: Mapping[str, bytes]) -> None:
    """The new folder `output` with these files, made aside and then given its name, so that it is whole or not there."""
    aside = None
    try:
        output.parent.mkdir(parents=True, exist_ok=True)
        aside = Path(tempfile.mkdtemp(dir=output.parent, prefix=f".{output.name}."))
        for name, data in files.items():
            path = aside / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        aside.chmod(0o755)
        aside.rename(output)
    except OSError as error:
        raise EvidenceError(
            f"{output}: cannot be written ({error.strerror}), expected a new folder in a writable place with space",
            "name another --output",
        ) from None
    finally:
        if aside is not None:
            shutil.rmtree(aside, ignore_errors=True)

"""The valid package that every case damages, made of this repository's own schemas and verifiers.

Standard library only: this folder can be carried away and run against any other reader.
"""

import hashlib
import json
from functools import lru_cache
from pathlib import Path

TOP = "demo"
ROOT = Path(__file__).resolve().parents[2]
ROW = {
    "case": "tiny-rr",
    "profile": "tiny",
    "engine": "synthetic",
    "topology": "two-worker",
    "surface": "rr",
    "outcome": "NOT_ATTEMPTED",
    "reason": "NOT_ATTEMPTED",
    "synthetic": True,
    "attempts": [],
    "decidedBy": None,
    "blocker": "nobody tried",
}
COUNTS = ["profiles", "cases", "attempts", "comparisons", "incompleteComparisons", "mainSamples", "warmSamples", "bodies", "lifecycleRecords"]  # fmt: skip
BODY = b'data: {"choices":[]}\n\n'
BODY_NAME = f"results/settings/first/bodies/{hashlib.sha256(BODY).hexdigest()}"

GUIDE = b"""# demo: demo-evaluation.tgz

Everything here is synthetic.

0 requested profiles, 0 cases, 0 functional attempts, 0 complete comparisons (0 main and 0 warm samples), 0 that did
not finish, 0 lifecycle records. Matrix status: FINAL. Synthetic: all.

* No optimum.
"""


def text(value) -> bytes:
    return (json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False) + "\n").encode()


def seal(files: dict[str, bytes]) -> dict[str, bytes]:
    """The same files with a right SHA256SUMS."""
    rows = sorted((name.encode(), data) for name, data in files.items() if name != "SHA256SUMS")
    lines = [b"%b  %b\n" % (hashlib.sha256(data).hexdigest().encode(), name) for name, data in rows]
    return {**files, "SHA256SUMS": b"".join(lines)}


def small() -> dict[str, bytes]:
    """Five files, enough for the tar, gzip and checksum rules."""
    return seal(
        {
            "README.md": b"# demo\n",
            "verify-results.py": b"print('verified')\n",
            "results/notes.txt": b"x" * 600,
            BODY_NAME: BODY,
            "results/settings/first/bodies/empty": b"",
        }
    )


def shipped() -> dict[str, bytes]:
    """Schemas, verifiers and proxy as this repository pins them, by their names in a package."""
    files = {}
    for line in (ROOT / "SHA256SUMS").read_text().splitlines():
        name = line[66:]
        room, _, rest = name.partition("/")
        if room in ("schemas", "verifiers"):
            files[name if room == "schemas" else rest] = (ROOT / name).read_bytes()
    return files


def full() -> dict[str, bytes]:
    """A package that is whole: trusted files, the least of every index, and a few bodies."""
    return dict(_full())


@lru_cache
def _full() -> dict[str, bytes]:
    definition = b'id = "tiny"\n'
    profile = {
        "id": "tiny",
        "repository": "example/tiny",
        "revision": "a" * 40,
        "revisionReason": None,
        "state": "accessible",
        "dateSensitive": False,
        "license": "apache-2.0",
        "artifacts": [],
        "sourceIndexSha256": None,
        "template": {"source": "repository", "sha256": None},
        "definition": {"path": "source-definitions/tiny.toml", "sha256": hashlib.sha256(definition).hexdigest()},
    }
    manifest = {
        "schemaVersion": 1,
        "campaign": "demo",
        "title": "Demo",
        "status": "FINAL",
        "distribution": {"archive": "demo-evaluation.tgz", "topFolder": "demo", "preparation": False},
        "synthetic": "all",
        "statement": "Everything here is synthetic.",
        "engines": [],
        "gateways": [],
        "boundaries": [{"id": "not-optimum", "statement": "No optimum."}],
        "privacyExceptions": [],
        "counts": dict.fromkeys(COUNTS, 0),
        "builder": {"name": "serving-evidence", "version": "0.1.0"},
        "proxySha256": hashlib.sha256(b"").hexdigest(),
        "dates": {"firstRunStartedAt": None, "lastRunEndedAt": None},
    }
    matrix = {"schemaVersion": 1, "campaign": "demo", "status": "FINAL", "surfaces": ["rr"], "rows": [ROW]}
    return seal(
        shipped()
        | {
            "README.md": GUIDE,
            "source-definitions/tiny.toml": definition,
            "model-identities.json": text({"schemaVersion": 1, "profiles": [profile], "historicalCatalog": []}),
            "models/tiny.json": text({"schemaVersion": 1, "profile": profile}),
            "recipes.json": text({"schemaVersion": 1, "recipes": []}),
            "runtime-matrix.json": text(matrix),
            "results/settings-index.json": text({"schemaVersion": 1, "comparisons": []}),
            "results/notes.txt": b"x" * 600,
            BODY_NAME: BODY,
            "results/settings/first/bodies/twin-1": b"the same",
            "results/settings/first/bodies/twin-2": b"the same",
            "manifest.json": text(manifest),
        }
    )

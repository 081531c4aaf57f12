"""A small package that every part of the archive reader accepts: the ground that hostile cases stand on."""

import hashlib
import json

from evidence import shipped

TOP = "demo"
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
HASH = hashlib.sha256(b"").hexdigest()


def text(value) -> bytes:
    return (json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False) + "\n").encode()


def seal(files: dict[str, bytes]) -> dict[str, bytes]:
    """The same files with a right SHA256SUMS."""
    rows = sorted((name.encode(), data) for name, data in files.items() if name != "SHA256SUMS")
    lines = [b"%b  %b\n" % (hashlib.sha256(data).hexdigest().encode(), name) for name, data in rows]
    return {**files, "SHA256SUMS": b"".join(lines)}


def small() -> dict[str, bytes]:
    """Five files, enough for the tar, gzip and checksum rules."""
    body = b'data: {"choices":[]}\n\n'
    return seal(
        {
            "README.md": b"# demo\n",
            "verify-results.py": b"print('verified')\n",
            "results/notes.txt": b"x" * 600,
            f"results/settings/first/bodies/{hashlib.sha256(body).hexdigest()}": body,
            "results/settings/first/bodies/empty": b"",
        }
    )


def full() -> dict[str, bytes]:
    """A package that `validate` accepts without running verifiers: trusted files and the least of every index."""
    definition = b'id = "tiny"\n'
    profile = {
        "id": "tiny",
        "repository": "example/tiny",
        "revision": "a" * 40,
        "state": "accessible",
        "dateSensitive": False,
        "license": "apache-2.0",
        "artifacts": [],
        "sourceIndexSha256": None,
        "template": {"source": "repository", "sha256": None},
        "definition": {"path": "source-definitions/tiny.toml", "sha256": hashlib.sha256(definition).hexdigest()},
    }
    counts = ("profiles cases attempts comparisons incompleteComparisons mainSamples warmSamples bodies "
              "lifecycleRecords").split()  # fmt: skip
    files = {
        name if name.startswith("schemas/") else name.partition("/")[2]: data for name, data in shipped.files().items()
    }
    files |= {
        "README.md": b"# demo: demo-evaluation.tgz\n",
        "source-definitions/tiny.toml": definition,
        "model-identities.json": text({"schemaVersion": 1, "profiles": [profile], "historicalCatalog": []}),
        "models/tiny.json": text({"schemaVersion": 1, "profile": profile}),
        "recipes.json": text({"schemaVersion": 1, "recipes": []}),
        "runtime-matrix.json": text(
            {"schemaVersion": 1, "campaign": "demo", "status": "FINAL", "surfaces": ["rr"], "rows": [ROW]}
        ),
        "results/settings-index.json": text({"schemaVersion": 1, "comparisons": []}),
        "manifest.json": text(
            {
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
                "counts": dict.fromkeys(counts, 0),
                "builder": {"name": "serving-evidence", "version": "0.1.0"},
                "proxySha256": HASH,
                "dates": {"firstRunStartedAt": None, "lastRunEndedAt": None},
            }
        ),
    }
    return seal(files)

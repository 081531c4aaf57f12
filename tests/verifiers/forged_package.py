"""The rest of the forge: attempts, an incomplete comparison, identities, recipes, matrix, manifest, and the seal."""

from __future__ import annotations

import json
from functools import lru_cache
from pathlib import Path
from typing import Any

from tests.verifiers.forge import (
    MIDNIGHT,
    ROOT,
    WORKERS,
    Comparison,
    dump,
    instant,
    json_body,
    launches,
    receipt,
    sample,
    sha,
    stream_body,
)

SURFACES = ["native", "rr", "exact"]
REVISION = "0123456789abcdef0123456789abcdef01234567"
TOKENS = [1, 15043, 3186]
GATEWAY = {"kind": "built-in", "name": "round-robin", "sha256": None, "reason": "part of the runner"}
BOUNDARIES = ["not-release-qualification", "not-optimum", "not-sla", "not-model-maximum", "not-gpu-result",
              "snapshot-not-peak", "one-prefill-only"]  # fmt: skip
PROBE = json.dumps({"messages": [{"role": "user", "content": "hello"}], "max_tokens": 4}).encode()


class Attempt:
    """One functional attempt: `answers` are (finish reason, worker) of its requests."""

    def __init__(self, name: str, profile: str, surface: str, minute: int, outcome: str, reason: str,
                 answers: list[tuple[str, str]], accepted: bool = False, exact: dict | None = None) -> None:  # fmt: skip
        self.name = name
        self.bodies: dict[str, bytes] = {}
        self.samples: list[dict] = []
        self.ledgers: dict[str, list[dict]] = {}
        started = outcome not in ("BLOCKED_ACCESS", "MISSING_IMAGE", "MISSING_STORAGE")
        workers = WORKERS[:1] if surface == "native" else WORKERS
        clock = 0.5
        if started:
            self.ledgers = {worker: [] for worker in workers}
        for number, (finish, worker) in enumerate(answers, 1):
            offer = f"attempt-{number:03d}"
            body = PROBE if surface == "exact" else json.dumps(
                {"messages": [{"role": "user", "content": f"case {number}"}], "stream": True}
            ).encode()  # fmt: skip
            key = f"{name}-{number}"
            response = (
                json_body(key, finish=finish)
                if surface == "exact"
                else stream_body(key, finish=finish, created=MIDNIGHT + 60 * minute + clock)
            )
            if finish == "broken":
                response = b"data: {broken\n\n"
            self.bodies.update({sha(body): body, sha(response): response})
            classes = {"stop": "NORMAL", "length": "CAPPED", "broken": "MALFORMED"}
            tokens = 2 if surface == "exact" else 6
            broken = finish == "broken"
            self.samples.append(
                sample(offer, None, None, "functional", worker, requestSha256=sha(body), requestBytes=len(body),
                       responseSha256=sha(response), responseBytes=len(response), startedSeconds=clock,
                       ttftSeconds=None if surface == "exact" or broken else 0.05, totalSeconds=round(0.2 + number * 0.001, 9),
                       classification=classes[finish], finishReason=None if broken else finish,
                       promptTokens=None if broken else 11, completionTokens=None if broken else tokens)
            )  # fmt: skip
            rows = self.ledgers[worker]
            rows.append(receipt(len(rows) + 1, offer, clock + 10, clock + 10.15, body, response))
            clock += 1
        self.controls: list[dict] = []
        if started:
            listing = b'{"object":"list","data":[{"id":"tiny"}]}'
            self.bodies[sha(listing)] = listing
            for number, worker in enumerate(workers, 1):
                self.controls += [
                    {"id": f"models-{number}", "kind": "models", "worker": worker, "path": "/v1/models", "status": 200,
                     "sha256": sha(listing), "bytes": len(listing), "kept": True, "withheldReason": None},
                    {"id": f"metrics-{number}", "kind": "metrics", "worker": worker, "path": "/metrics", "status": 200,
                     "sha256": sha(b"withheld"), "bytes": 8, "kept": False, "withheldReason": "deployment details"},
                ]  # fmt: skip
            told = b'{"version": "1"}'
            self.bodies[sha(told)] = told
            self.controls += [
                {"id": f"version-{number}", "kind": "version", "worker": worker, "path": "/version", "status": 200,
                 "sha256": sha(told), "bytes": len(told), "kept": True, "withheldReason": None}
                for number, worker in enumerate(workers, 1)
            ]  # fmt: skip
            for worker in workers:
                rows = self.ledgers[worker]
                control = receipt(len(rows) + 1, None, 20 + len(rows), 20.1 + len(rows), b"", listing)
                control.update(method="GET", path="/v1/models", traffic=False, requestHeaders={}, responseHeaders={})
                self.bodies[sha(b"")] = b""
                rows.append(control)
        counts: dict[str, int] = {}
        for row in self.samples:
            counts[row["classification"]] = counts.get(row["classification"], 0) + 1
        if exact is not None:
            token_body = json.dumps({"tokens": exact["observedTokenIds"]}).encode()
            self.bodies[sha(token_body)] = token_body
            self.controls += [
                {"id": f"tokenize-{number}", "kind": "tokenize", "worker": worker, "path": "/tokenize", "status": 200,
                 "sha256": sha(token_body), "bytes": len(token_body), "kept": True, "withheldReason": None}
                for number, worker in enumerate(workers, 1)
            ]  # fmt: skip
            exact = {"requestSha256": sha(PROBE), "expectedTokenIds": TOKENS, "control": "tokenize-1", **exact}
        self.data: dict[str, Any] = {
            "schemaVersion": 1, "id": name, "run": name, "case": f"{profile}-synthetic-{surface}", "profile": profile,
            "engine": "synthetic", "topology": "single" if surface == "native" else "two-worker", "surface": surface,
            "synthetic": True, "startedAt": instant(60 * minute), "endedAt": instant(60 * minute + 30), "ended": True,
            "outcome": outcome, "reason": reason, "message": None if outcome == "SUCCESS" else "it did not work",
            "launches": [one for one in launches(None, None, None) if one["worker"] in workers] if started else [],
            "gateway": None if surface == "native" or not started else dict(GATEWAY),
            "workers": [{"alias": w, "device": w.replace("worker", "device")} for w in workers],
            "requests": len(self.samples), "counts": counts, "exact": exact,
            "scope": {"accepted": accepted, "modes": [surface] if accepted else [], "statement": f"{surface} only"},
        }  # fmt: skip

    def files(self) -> dict[str, bytes]:
        folder = f"results/converged/{self.name}"
        made = {
            f"{folder}/attempt.json": dump(self.data),
            f"{folder}/samples.json": dump({"schemaVersion": 1, "comparison": self.name, "samples": self.samples}),
            f"{folder}/controls.json": dump({"schemaVersion": 1, "attempt": self.name, "controls": self.controls}),
        }
        for worker, rows in self.ledgers.items():
            ledger = {"schemaVersion": 1, "worker": worker, "arm": "attempt", "receipts": rows}
            made[f"{folder}/ledgers/attempt.{worker}.json"] = dump(ledger)
        made.update({f"{folder}/bodies/{name}": data for name, data in self.bodies.items()})
        return made

    def index_row(self, files: dict[str, bytes]) -> dict:
        folder = f"results/converged/{self.name}"
        keys = ("id", "case", "profile", "engine", "topology", "surface", "synthetic", "startedAt", "endedAt", "ended",
                "outcome", "reason")  # fmt: skip
        hashes = {key: sha(files[f"{folder}/{key}.json"]) for key in ("attempt", "samples", "controls")}
        return {**{key: self.data[key] for key in keys}, "accepted": self.data["scope"]["accepted"], "folder": folder,
                "files": hashes}  # fmt: skip


class Incomplete:
    """A comparison that its runner did not survive: two arms begun, one timeout with an upstream partial."""

    def __init__(self, name: str) -> None:
        whole = Comparison("aborted", "memory", 9, (0.1, 0.1), (4 << 30, 2 << 30))
        self.run = whole.data["run"]
        self.name = self.run
        self.snapshots = whole.snapshots[:2]
        self.samples = [row for row in whole.samples if row["repetition"] == 1][:70]
        last = self.samples.pop()
        lost = self.samples[-1]
        partial = whole.bodies[lost["responseSha256"]][:400]
        seen = whole.bodies[lost["responseSha256"]][:250]
        self.partials = {sha(partial): partial}
        gone = (last["offer"], "r1-b-main-011", "r1-b-main-012")
        kept = {row["offer"] for row in self.samples}
        self.ledgers: dict[str, dict] = {}
        for arm in ("r1-a", "r1-b"):
            for worker in WORKERS:
                ledger = whole.ledgers[f"{arm}.{worker}"]
                ledger["receipts"] = [row for row in ledger["receipts"] if row["requestId"] in kept]
                for row in ledger["receipts"]:
                    if row["requestId"] == lost["offer"]:
                        row.update(
                            responseSha256=sha(partial),
                            responseBytes=len(partial),
                            complete=False,
                            reason="client-closed",
                        )
                self.ledgers[f"{arm}.{worker}"] = ledger
        lost.update(transport="timeout", classification="CLIENT_TIMEOUT", finishReason=None, promptTokens=None,
                    completionTokens=None, responseSha256=sha(seen), responseBytes=len(seen))  # fmt: skip
        whole.store(seen)
        whole.bodies.pop(sha(partial), None)
        cited = {row[key] for row in self.samples for key in ("requestSha256", "responseSha256")}
        cited |= {sha(data) for data in (whole.main, whole.native, *whole.ready)}
        self.bodies = {key: data for key, data in whole.bodies.items() if key in cited}
        arms = whole.data["arms"][:2]
        arms[1].update(wallSeconds=None, client=None)
        arms[1]["timeline"].update(lastMainSeconds=None)
        self.data = {**whole.data, "id": self.name, "comparison": "aborted", "arms": arms, "reason": "RUNNER_DIED",
                     "message": "the runner was killed", "abortedAt": None, "abortedSeconds": 66.5}  # fmt: skip
        self.offers: list[dict] = []
        receipts = {
            row["requestId"]: (worker.split(".")[1], row)
            for worker, one in self.ledgers.items()
            for row in one["receipts"]
        }
        main = next(row for row in self.samples if row["phase"] == "main")
        for row in [*self.samples, *({"offer": offer} for offer in gone)]:
            offer = row["offer"]
            told = receipts.get(offer)
            sampled = "transport" in row
            fate = "never-started"
            if sampled:
                fate = {"complete": "completed", "timeout": "timed-out"}[row["transport"]]
            elif offer == last["offer"]:
                fate = "failed"
            self.offers.append(
                {
                    "offer": offer, "repetition": 1, "arm": offer[3].upper(), "phase": offer[5:-4],
                    "worker": row["worker"] if sampled and row["phase"] == "native-warm" else None,
                    "requestSha256": row.get("requestSha256", main["requestSha256"]),
                    "requestBytes": row.get("requestBytes", main["requestBytes"]),
                    "fate": fate, "sample": sampled,
                    "client": {"sha256": row["responseSha256"], "bytes": row["responseBytes"]} if sampled else None,
                    "upstream": None if told is None else {"sha256": told[1]["responseSha256"], "bytes": told[1]["responseBytes"],
                                                           "worker": told[0], "complete": told[1]["complete"]},
                }
            )  # fmt: skip

    def counts(self) -> dict:
        fates = [one["fate"] for one in self.offers]
        return {"offered": len(fates), "completed": fates.count("completed"), "timedOut": fates.count("timed-out"),
                "failed": fates.count("failed"), "neverStarted": fates.count("never-started")}  # fmt: skip

    def files(self) -> dict[str, bytes]:
        folder = f"results/incomplete/{self.name}"
        offers = {
            "schemaVersion": 1,
            "comparison": self.name,
            "planned": 252,
            "counts": self.counts(),
            "offers": self.offers,
        }
        made = {
            f"{folder}/comparison.json": dump(self.data),
            f"{folder}/samples.json": dump({"schemaVersion": 1, "comparison": self.name, "samples": self.samples}),
            f"{folder}/snapshots.json": dump(
                {"schemaVersion": 1, "comparison": self.name, "snapshots": self.snapshots}
            ),
            f"{folder}/offers.json": dump(offers),
        }
        made.update({f"{folder}/ledgers/{name}.json": dump(ledger) for name, ledger in self.ledgers.items()})
        made.update({f"{folder}/bodies/{name}": data for name, data in self.bodies.items()})
        made.update({f"{folder}/partials/{name}": data for name, data in self.partials.items()})
        return made

    def index_row(self, files: dict[str, bytes]) -> dict:
        folder = f"results/incomplete/{self.name}"
        keys = ("id", "comparison", "run", "case", "profile", "engine", "kind", "synthetic", "reason")
        hashes = {key: sha(files[f"{folder}/{key}.json"]) for key in ("comparison", "samples", "offers")}
        return {**{key: self.data[key] for key in keys}, "folder": folder, "counts": self.counts(), "files": hashes}


def profile(name: str, state: str) -> dict:
    index = source_index(name)
    artifacts = [
        {"path": "config.json", "sha256": sha(f"{name} config".encode()), "bytes": 100},
        {"path": "model-00001-of-00002.safetensors", "sha256": sha(f"{name} 1".encode()), "bytes": 1000},
        {"path": "model-00002-of-00002.safetensors", "sha256": sha(f"{name} 2".encode()), "bytes": 1000},
    ]
    return {
        "id": name, "repository": f"example/{name}", "revision": REVISION, "revisionReason": None, "state": state, "dateSensitive": False,
        "license": "apache-2.0", "artifacts": artifacts if state == "accessible" else [],
        "sourceIndexSha256": sha(index) if state == "accessible" else None,
        "template": {"source": "tokenizer_config.json", "sha256": None},
        "definition": {"path": f"source-definitions/{name}.toml", "sha256": sha(definition(name))},
    }  # fmt: skip


def source_index(name: str) -> bytes:
    weights = {"a.weight": "model-00001-of-00002.safetensors", "b.weight": "model-00002-of-00002.safetensors"}
    return json.dumps({"metadata": {"total_size": 2000, "profile": name}, "weight_map": weights}, indent=2).encode()


def definition(name: str) -> bytes:
    return f'profile = "{name}"\n'.encode()


def env_file(recipe: dict) -> bytes:
    lines = [f"RECIPE={recipe['id']}", f"PROFILE={recipe['profile']}", f"ENGINE={recipe['engine']}",
             f"MODES={','.join(recipe['modes'])}", f"ARGUMENTS={json.dumps(recipe['arguments'])}"]  # fmt: skip
    return ("\n".join(lines + [f"{k}={v}" for k, v in sorted(recipe["environment"].items())]) + "\n").encode()


def guide(manifest: dict[str, Any]) -> bytes:
    """README.md as far as it follows from the manifest."""
    counts, archive = manifest["counts"], manifest["distribution"]["archive"]
    boundaries = "".join(f"* {one['statement']}\n" for one in manifest["boundaries"])
    return (
        f"# {manifest['title']}\n\n{manifest['statement']}\n\n{counts['profiles']} requested profiles, {counts['cases']} cases, "
        f"{counts['attempts']} functional attempts, {counts['comparisons']} complete\ncomparisons ({counts['mainSamples']} main "
        f"and {counts['warmSamples']} warm samples), {counts['incompleteComparisons']} that did not finish,\n"
        f"{counts['lifecycleRecords']} lifecycle records. Matrix status: {manifest['status']}. Synthetic: {manifest['synthetic']}."
        f"\n\n{boundaries}\n```\nsha256sum -c {archive}.sha256\ncd {manifest['campaign']}\nsha256sum -c SHA256SUMS\n```\n"
    ).encode()


class Forge:
    """A whole campaign: four profiles, two comparisons, one aborted, attempts of seven outcomes."""

    def __init__(self) -> None:
        self.comparisons = [
            Comparison("memory-half", "memory", 1, (0.1, 0.102), (4 << 30, 2 << 30)),
            Comparison("seqs-four", "sequence-cap", 2, (0.3, 0.2), (4 << 30, 4 << 30)),
        ]
        self.incomplete = [Incomplete("aborted")]
        everyone = {"worker-1": 2, "worker-2": 2}
        engaged = {
            "observedTokenIds": TOKENS,
            "tokenIdsEqual": True,
            "engagement": "ADMITTED",
            "trafficPerWorker": everyone,
        }
        partial = {**engaged, "engagement": "PARTIAL_ONE_PREFILL", "trafficPerWorker": {"worker-1": 2, "worker-2": 0}}
        differs = {"observedTokenIds": [1, 2], "tokenIdsEqual": False, "engagement": "REJECTED",
                   "trafficPerWorker": {"worker-1": 0, "worker-2": 0}}  # fmt: skip
        both = [("stop", "worker-1"), ("stop", "worker-2")] * 2
        self.attempts = [
            Attempt("a01-native", "tiny", "native", 1, "NATIVE_FAILURE", "BAD_ANSWER", [("stop", "worker-1"), ("broken", "worker-1")]),
            Attempt("a02-native", "tiny", "native", 2, "SUCCESS", "OK", [("stop", "worker-1"), ("length", "worker-1")], True),
            Attempt("a03-rr-20261130t000300.000000z", "tiny", "rr", 3, "SUCCESS", "OK", both, True),
            Attempt("a04-exact", "tiny", "exact", 4, "SUCCESS", "OK", both, True, engaged),
            Attempt("a05-exact", "tiny-b", "exact", 5, "EXACT_PARTIAL_ONE_PREFILL", "ONE_PREFILL", [("stop", "worker-1")] * 2, False, partial),
            Attempt("a06-native", "tiny-b", "native", 6, "MISSING_IMAGE", "PROGRAM_NOT_FOUND", []),
            Attempt("a07-rr", "tiny-b", "rr", 7, "MISSING_STORAGE", "MODEL_NOT_FOUND", []),
            Attempt("a08-native", "gated", "native", 8, "BLOCKED_ACCESS", "ACCESS_DENIED", []),
            Attempt("a09-exact", "gated", "exact", 9, "EXACT_REJECTED", "TOKENS_DIFFER", [], False, differs),
        ]  # fmt: skip
        self.profiles = [
            profile("tiny", "accessible"),
            profile("tiny-b", "accessible"),
            profile("gated", "gated"),
            profile("deferred", "deferred"),
        ]
        self.historical = [{"profile": "tiny", "engine": "old-engine", "state": "RAN", "note": "an earlier catalogue"}]
        self.recipes = [
            self.recipe("tiny-seqs", "rr", ["native", "rr"], "seqs-four"),
            self.recipe("tiny-exact", "exact", ["exact"], None),
        ]
        self.rules = {
            "tiny-seqs.rr": ("round-robin", 2), "tiny-seqs.native": ("direct", 1), "tiny-exact.exact": ("exact-prefix", 2),
        }  # fmt: skip
        self.matrix_status = "FINAL"
        self.rows = self.matrix_rows()
        self.registry: dict[str, Any] = {
            "schemaVersion": 1, "engine": "synthetic", "adapter": "synthetic", "version": "1", "image": None, "imageDigest": None,
            "candidates": [{"profile": "tiny", "state": "CANDIDATE", "arguments": [], "note": ""}],
            "probes": [{"profile": "tiny", "path": "registry-synthetic/probes/tiny.json", "sha256": sha(PROBE),
                        "expectedTokenIds": TOKENS, "tokenIdsSha256": sha(json.dumps(TOKENS, separators=(",", ":")).encode())}],
        }  # fmt: skip
        self.pd: dict[str, Any] = {
            "schemaVersion": 1, "statement": "reviewed summaries; public bytes cannot reconstruct them",
            "cases": [
                {"id": "pd-good", "case": "tiny-pd", "profile": "tiny", "engine": "synthetic", "reviewed": True, "outcome": "QUALIFIED",
                 "reason": None, "roles": {r: {"requestSha256": sha(r.encode()), "responseSha256": sha(b"r" + r.encode())} for r in ("prefill", "decode")},
                 "statePreserved": True, "bootstrapIdentity": sha(b"bootstrap"), "decodeTransferCounters": {"before": 0, "after": 2},
                 "negatives": [{"id": "no-prefill", "rejected": True}], "recovery": True, "cleanup": True, "completedChecks": ["all"]},
                {"id": "pd-bad", "case": "tiny-b-pd", "profile": "tiny-b", "engine": "synthetic", "reviewed": True, "outcome": "FAILED",
                 "reason": "TRANSFER_TIMEOUT", "roles": None, "statePreserved": None, "bootstrapIdentity": None,
                 "decodeTransferCounters": None, "negatives": [], "recovery": None, "cleanup": True, "completedChecks": ["cleanup"]},
            ],
        }  # fmt: skip
        self.manifest: dict[str, Any] = {
            "schemaVersion": 1, "campaign": "forged", "title": "A forged campaign", "status": "FINAL",
            "distribution": {"archive": "forged-evaluation.tgz", "topFolder": "forged", "preparation": False},
            "synthetic": "all", "statement": "Everything here is synthetic.",
            "engines": [{"id": "synthetic", "adapter": "synthetic", "version": "1", "synthetic": True, "registry": "registry-synthetic",
                         "identity": [{"name": "program", "value": "synthetic 1", "sha256": None}], "source": "reported"}],
            "gateways": [{"kind": "built-in", "name": "round-robin", "sha256": None, "sourceCommit": None, "reason": "part of the runner"}],
            "boundaries": [{"id": one, "statement": f"this is {one}"} for one in BOUNDARIES],
            "privacyExceptions": [], "builder": {"name": "forge", "version": "1"}, "proxySha256": "",
            "dates": {"firstRunStartedAt": instant(60), "lastRunEndedAt": instant(23 * 3600)},
        }  # fmt: skip
        self.lifecycle: dict[str, bytes] = {}

    def recipe(self, name: str, surface: str, modes: list[str], comparison: str | None) -> dict:
        setting = {"argument": "--max-num-seqs", "value": "4"} if comparison else None
        extra = ["--max-num-seqs", "4"] if comparison else []
        return {
            "id": name, "case": f"tiny-synthetic-{surface}", "profile": "tiny", "engine": "synthetic", "topology": "two-worker",
            "modes": modes, "arguments": ["serve", "--port", "{port}", "--model", "{model}", *extra], "environment": {"DEVICE": "0"},
            "comparison": comparison, "selected": "candidate" if comparison else None, "setting": setting,
            "requalification": {"required": comparison is not None, "attempt": None if comparison else "a04-exact", "statement": "see the attempts"},
            "gateway": {"kind": "built-in", "name": "round-robin"}, "scope": "two workers, this profile only",
            "settingsFile": f"settings/{name}.env",
        }  # fmt: skip

    def matrix_rows(self) -> list[dict]:
        rows = []
        for one in self.profiles:
            for surface in SURFACES:
                case = f"{one['id']}-synthetic-{surface}"
                mine = sorted((a for a in self.attempts if a.data["case"] == case), key=lambda a: a.data["startedAt"])
                if one["state"] == "deferred":
                    outcome, reason = "USER_DEFERRED", "USER_DEFERRED"
                elif mine:
                    outcome, reason = mine[-1].data["outcome"], mine[-1].data["reason"]
                else:
                    outcome, reason = "NOT_ATTEMPTED", "NOT_ATTEMPTED"
                rows.append(
                    {
                        "case": case, "profile": one["id"], "engine": "synthetic",
                        "topology": "single" if surface == "native" else "two-worker", "surface": surface, "outcome": outcome,
                        "reason": reason, "synthetic": True, "attempts": [a.name for a in mine],
                        "decidedBy": mine[-1].name if mine else None, "blocker": None if outcome == "SUCCESS" else "it is blocked",
                    }
                )  # fmt: skip
        return sorted(rows, key=lambda row: row["case"])

    def seal(self) -> dict[str, bytes]:
        """Name -> bytes with every hash, index, count and SHA256SUMS true for the documents as they are."""
        files: dict[str, bytes] = {}
        for path in sorted((ROOT / "verifiers").rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                files[path.relative_to(ROOT / "verifiers").as_posix()] = path.read_bytes()
        files.setdefault("receipt-proxy.py", b"# the recorder\n")
        for path in sorted((ROOT / "schemas").glob("*.json")):
            files[f"schemas/{path.name}"] = path.read_bytes()
        for part in (*self.comparisons, *self.incomplete, *self.attempts):
            files.update(part.files())
        index = sorted((one.index_row(files) for one in self.comparisons), key=lambda row: row["id"])
        files["results/settings-index.json"] = dump({"schemaVersion": 1, "comparisons": index})
        aborted = sorted((one.index_row(files) for one in self.incomplete), key=lambda row: row["id"])
        files["results/incomplete-settings-index.json"] = dump({"schemaVersion": 1, "comparisons": aborted})
        tried = sorted((one.index_row(files) for one in self.attempts), key=lambda row: row["id"])
        files["results/converged-index.json"] = dump({"schemaVersion": 1, "attempts": tried})
        files["results/pd-index.json"] = dump(self.pd)
        files["results/lifecycle-index.json"] = dump({"schemaVersion": 1, "records": []})
        files.update(self.lifecycle)
        self.seal_identities(files)
        files["runtime-matrix.json"] = dump(
            {
                "schemaVersion": 1,
                "campaign": "forged",
                "status": self.matrix_status,
                "surfaces": SURFACES,
                "rows": self.rows,
            }
        )
        records = json.loads(files["results/lifecycle-index.json"])["records"]
        bodies = sum("/bodies/" in name for name in files)
        counts = {
            "profiles": len(self.profiles), "cases": len(self.rows), "attempts": len(self.attempts), "comparisons": len(self.comparisons),
            "incompleteComparisons": len(self.incomplete), "mainSamples": 144 * len(self.comparisons),
            "warmSamples": 108 * len(self.comparisons), "bodies": bodies, "lifecycleRecords": len(records),
        }  # fmt: skip
        manifest = {**self.manifest, "counts": counts, "proxySha256": sha(files["receipt-proxy.py"])}
        files["manifest.json"] = dump(manifest)
        files["README.md"] = guide(manifest)
        files["SHA256SUMS"] = "".join(f"{sha(files[name])}  {name}\n" for name in sorted(files)).encode()
        return files

    def seal_identities(self, files: dict[str, bytes]) -> None:
        files["model-identities.json"] = dump(
            {"schemaVersion": 1, "profiles": self.profiles, "historicalCatalog": self.historical}
        )
        for one in self.profiles:
            files[f"models/{one['id']}.json"] = dump({"schemaVersion": 1, "profile": one})
            files[one["definition"]["path"]] = definition(one["id"])
            if one["sourceIndexSha256"]:
                files[f"weights/{one['id']}.source-index"] = source_index(one["id"])
                lines = [f"{a['sha256']}  {a['path']}\n" for a in sorted(one["artifacts"], key=lambda a: a["path"])]
                files[f"weights/{one['id']}.sha256"] = "".join(lines).encode()
        files["registry-synthetic/manifest.json"] = dump(self.registry)
        files["registry-synthetic/probes/tiny.json"] = PROBE
        files["recipes.json"] = dump({"schemaVersion": 1, "recipes": self.recipes})
        for recipe in self.recipes:
            files[recipe["settingsFile"]] = env_file(recipe)
        for name, (strategy, workers) in self.rules.items():
            recipe, mode = name.split(".")
            hosts = [{"alias": f"worker-{n}", "url": f"http://192.0.2.{10 + n}:8000"} for n in range(1, workers + 1)]
            files[f"rules/{name}.json"] = dump(
                {"schemaVersion": 1, "recipe": recipe, "mode": mode, "listen": "http://192.0.2.1:8080", "strategy": strategy,
                 "workers": hosts, "note": "replace the addresses"}
            )  # fmt: skip


@lru_cache
def _sealed() -> dict[str, bytes]:
    return Forge().seal()


def sealed() -> dict[str, bytes]:
    """The files of the forged package as it is, made once a process."""
    return dict(_sealed())


def lay(files: dict[str, bytes], folder: Path) -> Path:
    """Write a package into a folder."""
    for parent in sorted({folder / name.rpartition("/")[0] for name in files}):
        parent.mkdir(parents=True, exist_ok=True)
    for name, data in files.items():
        (folder / name).write_bytes(data)
    return folder

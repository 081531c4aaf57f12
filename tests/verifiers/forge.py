"""A forge: a complete valid package built in memory from the contract, to be altered one fact at a time.

`Forge()` holds every document as plain objects; a test changes one fact and calls `seal()`, which makes hashes,
indices, counts and SHA256SUMS true again and gives name -> bytes. What is damaged is then exactly the one fact.
"""

from __future__ import annotations

import copy
import hashlib
import json
from fractions import Fraction
from pathlib import Path
from typing import Any

from tests.verifiers.second_judge import p95

ROOT = Path(__file__).resolve().parents[2]
ORDER = ["A", "B", "B", "A", "A", "B"]
WORKERS = ["worker-1", "worker-2"]
PHASES = [("native-warm", 2), ("rr-warm", 16), ("main", 24)]
DAY = "2026-11-30T"
MIDNIGHT = 1795996800  # of that day, in seconds since 1970
NOON = MIDNIGHT + 12 * 3600


def sha(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def dump(value: Any) -> bytes:
    return (json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False) + "\n").encode()


def instant(second: int) -> str:
    return f"{DAY}{second // 3600:02d}:{second // 60 % 60:02d}:{second % 60:02d}.000000Z"


def stream_body(key: str, pieces: int = 6, finish: str = "stop", prompt: int = 11, tokens: int | None = None,
                created: float = NOON) -> bytes:  # fmt: skip
    """A streamed chat answer as engines send it: role first, text, finish, usage, [DONE]."""
    head = {"id": f"chatcmpl-{key}", "object": "chat.completion.chunk", "created": int(created), "model": "tiny"}
    chunks: list[dict] = [{**head, "choices": [{"index": 0, "delta": {"role": "assistant"}, "finish_reason": None}]}]
    for number in range(pieces):
        delta = {"content": f" word{number}"}
        chunks.append({**head, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]})
    chunks.append({**head, "choices": [{"index": 0, "delta": {}, "finish_reason": finish}]})
    usage = {"prompt_tokens": prompt, "completion_tokens": pieces if tokens is None else tokens}
    chunks.append({**head, "choices": [], "usage": usage})
    return b"".join(b"data: " + json.dumps(one).encode() + b"\n\n" for one in chunks) + b"data: [DONE]\n\n"


def json_body(key: str, text: str = "ready", finish: str = "stop", prompt: int = 11, tokens: int = 2) -> bytes:
    """A plain chat answer."""
    message = {"role": "assistant", "content": text}
    return json.dumps(
        {
            "id": f"chatcmpl-{key}",
            "object": "chat.completion",
            "choices": [{"index": 0, "message": message, "finish_reason": finish}],
            "usage": {"prompt_tokens": prompt, "completion_tokens": tokens},
        }
    ).encode()


def launches(argument: str | None, value: str | None, ready: dict | None) -> list[dict]:
    extra = [argument, value] if argument else []
    return [
        {
            "worker": worker,
            "arguments": ["serve", "--port", "{port}", "--model", "{model}", *extra],
            "argumentsSha256": sha(f"{worker} {value}".encode()),
            "environment": {"DEVICE": "{device}"},
            "ready": copy.deepcopy(ready),
        }
        for worker in WORKERS
    ]


def receipt(sequence: int, offer: str | None, start: float, end: float, request: bytes, response: bytes) -> dict:
    headers = {"content-type": "application/json", "content-length": str(len(request))}
    if offer is not None:
        headers["x-request-id"] = offer
    return {
        "sequence": sequence,
        "requestId": offer,
        "method": "POST",
        "path": "/v1/chat/completions",
        "traffic": True,
        "requestSha256": sha(request),
        "requestBytes": len(request),
        "responseSha256": sha(response),
        "responseBytes": len(response),
        "status": 200,
        "complete": True,
        "reason": None,
        "startedSeconds": round(start, 9),
        "endedSeconds": round(end, 9),
        "requestHeaders": headers,
        "responseHeaders": {"content-type": "text/event-stream" if response[:5] == b"data:" else "application/json"},
    }


def sample(offer: str, repetition: int | None, arm: str | None, phase: str, worker: str | None, **fields: Any) -> dict:
    made = {
        "offer": offer,
        "repetition": repetition,
        "arm": arm,
        "phase": phase,
        "worker": worker,
        "status": 200,
        "transport": "complete",
        "reasoningSeconds": None,
        "sendLagSeconds": 0.000021,
        "classification": "NORMAL",
        "finishReason": "stop",
        "promptTokens": 11,
        "completionTokens": 6,
    }
    made.update(fields)
    return made


class Comparison:
    """One comparison; `slow` gives the arms' TTFT in seconds, `memory` their bytes a device."""

    def __init__(self, name: str, kind: str, place: int, slow: tuple[float, float], memory: tuple[int, int]) -> None:
        self.name, self.kind, self.place = name, kind, place
        self.bodies: dict[str, bytes] = {}
        argument, values = ("--gpu-memory", ("0.9", "0.5")) if kind == "memory" else ("--max-num-seqs", ("2", "4"))
        main = {"model": "tiny", "messages": [{"role": "user", "content": "Say six words."}], "stream": True,
                "temperature": 0, "max_tokens": 32, "stream_options": {"include_usage": True}}  # fmt: skip
        native = {key: value for key, value in main.items() if key not in ("stream", "stream_options")}
        self.main, self.native = json.dumps(main).encode(), json.dumps(native).encode()
        self.ready = (b'{"messages":[{"role":"user","content":"hi"}],"max_tokens":1}', json_body(f"{name}-ready"))
        for data in (self.main, self.native, *self.ready):
            self.store(data)
        ready = {"requestSha256": sha(self.ready[0]), "responseSha256": sha(self.ready[1])}
        self.data: dict[str, Any] = {
            "schemaVersion": 1,
            "id": name,
            "case": "tiny-synthetic-rr",
            "run": f"{name}-20261130t0{place}0000.000000z",
            "campaign": "forged",
            "profile": "tiny",
            "engine": "synthetic",
            "topology": "two-worker",
            "surface": "rr",
            "kind": kind,
            "synthetic": True,
            "setting": {"argument": argument, "baseline": values[0], "candidate": values[1]},
            "protocol": {
                "concurrency": 8,
                "mainPerArm": 24,
                "repetitions": 3,
                "order": ORDER,
                "nativeWarmPerWorker": 1,
                "rrWarm": 16,
                "temperature": 0,
                "outputBudget": 32,
                "stream": True,
            },
            "requests": {
                "native": {"sha256": sha(self.native), "bytes": len(self.native)},
                "main": {"sha256": sha(self.main), "bytes": len(self.main)},
            },
            "workers": [{"alias": f"worker-{n}", "device": f"device-{n}"} for n in (1, 2)],
            "gateway": {"kind": "built-in", "name": "round-robin", "sha256": None, "reason": "part of the runner"},
            "dateControl": None,
            "arms": [],
        }
        self.samples: list[dict] = []
        self.ledgers: dict[str, dict] = {}
        self.snapshots: list[dict] = []
        for number, arm in enumerate(ORDER):
            side = 0 if arm == "A" else 1
            self.run_arm(number, arm, values[side], slow[side], memory[side], ready)
        self.decision: dict[str, Any] | None = None

    def store(self, data: bytes) -> str:
        self.bodies[sha(data)] = data
        return sha(data)

    def run_arm(self, number: int, arm: str, value: str, slow: float, memory: int, ready: dict) -> None:
        repetition = number // 2 + 1
        name = f"r{repetition}-{arm.lower()}"
        ledgers: dict[str, list[dict]] = {worker: [] for worker in WORKERS}
        began = MIDNIGHT + 3600 * self.place + number * 60
        clock = 2.0
        marks = {"engineStartedSeconds": 0.1, "readySeconds": 1.5}
        for phase, count in PHASES:
            if phase == "rr-warm":
                marks["nativeWarmEndedSeconds"] = clock
                taken = round(clock + 0.01, 9)
                marks["snapshotSeconds"] = round(clock + 0.02, 9)
                clock += 0.03
            elif phase == "main":
                marks["rrWarmEndedSeconds"] = clock
                clock = round(clock + 0.03, 9)
            free = [clock] * (1 if phase == "native-warm" else 8)
            for place in range(1, count + 1):
                slot = free.index(min(free))
                jitter = ((number * 7 + place * 13) % 17) * 0.0011 + place * 1e-7 + number * 3e-9
                ttft, total = slow + jitter, slow + 0.2 + jitter * 2
                start = round(free[slot] + 0.000021, 9)
                worker = WORKERS[(place - 1) % 2]
                offer = f"{name}-{phase}-{place:03d}"
                plain = phase == "native-warm"
                key = f"{self.name}-{offer}"
                request = self.native if plain else self.main
                response = json_body(key) if plain else stream_body(key, created=began + start + total / 2)
                self.store(response)
                ttft_seconds, total = (None if plain else round(ttft, 9)), round(total, 9)
                rows = ledgers[worker]
                rows.append(
                    receipt(len(rows) + 1, offer, 100 + start + 0.0005, 100 + start + total - 0.0004, request, response)
                )
                self.samples.append(
                    sample(offer, repetition, arm, phase, worker, requestSha256=sha(request), requestBytes=len(request),
                           responseSha256=sha(response), responseBytes=len(response), startedSeconds=start,
                           ttftSeconds=ttft_seconds, totalSeconds=total, completionTokens=2 if plain else 6)
                )  # fmt: skip
                free[slot] = round(start + total, 9)
            clock = round(max(free), 9)
        mains = [row for row in self.samples if row["offer"].startswith(f"{name}-main")]
        marks["firstMainSeconds"] = min(row["startedSeconds"] for row in mains)
        last = round(max(row["startedSeconds"] + row["totalSeconds"] for row in mains), 9)
        marks["lastMainSeconds"] = last
        setting = self.data["setting"]["argument"]
        self.data["arms"].append(
            {
                "repetition": repetition,
                "arm": arm,
                "sequence": number + 1,
                "startedAt": instant(3600 * self.place + number * 60),
                "wallSeconds": last,
                "launches": launches(setting, value, ready),
                "timeline": marks,
                "client": {"late": False, "limitSeconds": 0.05, "loopLagP99Seconds": 0.001, "loopLagMaxSeconds": 0.002,
                           "sendLagP99Seconds": 0.000021, "sendLagMaxSeconds": 0.000021, "processorShare": 0.2,
                           "wallClockStepped": False, "clock": "monotonic"},
                "logFindings": [],
            }
        )  # fmt: skip
        self.snapshots.append(
            {
                "repetition": repetition,
                "arm": arm,
                "takenSeconds": taken,
                "source": "synthetic",
                "method": f"what the synthetic engine says that it holds; device-1: {memory + 4096} bytes of it",
                "devices": [{"device": f"device-{n}", "worker": f"worker-{n}", "usedBytes": memory + n * 4096,
                             "totalBytes": 1 << 34, "reason": None} for n in (1, 2)],
            }
        )  # fmt: skip
        for worker, rows in ledgers.items():
            self.ledgers[f"{name}.{worker}"] = {"schemaVersion": 1, "worker": worker, "arm": name, "receipts": rows}

    def arm(self, name: str) -> dict:
        return next(one for one in self.data["arms"] if f"r{one['repetition']}-{one['arm'].lower()}" == name)

    def main_of(self, name: str) -> list[dict]:
        return [row for row in self.samples if row["offer"].startswith(f"{name}-main")]

    def side(self, name: str) -> dict:
        rows = self.main_of(name)
        texts = [f"{row['ttftSeconds']:.9f}" for row in rows]
        totals = [f"{row['totalSeconds']:.9f}" for row in rows]
        snapshot = next(one for one in self.snapshots if f"r{one['repetition']}-{one['arm'].lower()}" == name)
        return {
            "p95TtftSeconds": float(p95(texts)),
            "p95TotalSeconds": float(p95(totals)),
            "completionTokens": sum(row["completionTokens"] for row in rows),
            "wallSeconds": self.arm(name)["wallSeconds"],
            "devices": {one["device"]: one["usedBytes"] for one in snapshot["devices"]},
        }

    def decide(self) -> dict:
        """decision.json for a comparison in which nothing disqualifies."""
        pairs = [
            {"repetition": n, "baseline": self.side(f"r{n}-a"), "candidate": self.side(f"r{n}-b")} for n in (1, 2, 3)
        ]
        gates = []

        def gate(name: str, rows: list[dict]) -> None:
            gates.append({"gate": name, "holds": all(row["holds"] for row in rows), "rows": rows})

        def row(repetition: int | None, device: str | None, b: Any, c: Any, ratio: Fraction, holds: bool) -> dict:
            return {"repetition": repetition, "device": device, "baseline": b, "candidate": c,
                    "relative": f"{ratio.numerator}/{ratio.denominator}", "holds": holds}  # fmt: skip

        def exact(number: float) -> Fraction:
            return Fraction(repr(number))

        rows = []
        for pair in pairs:
            b, c = pair["baseline"]["completionTokens"], pair["candidate"]["completionTokens"]
            ratio = Fraction(abs(c - b), b)
            rows.append(row(pair["repetition"], None, b, c, ratio, ratio <= Fraction(1, 20)))
        gate("token-volume", rows)
        tails = [(p["repetition"], p["baseline"]["p95TtftSeconds"], p["candidate"]["p95TtftSeconds"]) for p in pairs]
        gains = [(exact(b) - exact(c)) / exact(b) for _, b, c in tails]
        if self.kind == "memory":
            rows = []
            for pair in pairs:
                for device in ("device-1", "device-2"):
                    b, c = pair["baseline"]["devices"][device], pair["candidate"]["devices"][device]
                    rows.append(row(pair["repetition"], device, b, c, Fraction(b - c, b), 10 * (b - c) >= 3 * b))
            gate("memory-reduction", rows)
            gate(
                "latency-regression",
                [row(n, None, b, c, -g, -g <= Fraction(1, 20)) for (n, b, c), g in zip(tails, gains, strict=True)],
            )
        else:
            gate(
                "latency-improvement", [row(n, None, b, c, g, g > 0) for (n, b, c), g in zip(tails, gains, strict=True)]
            )
            middle = sorted(gains)[1]
            gate("median-improvement", [row(None, None, None, None, middle, middle >= Fraction(1, 10))])
        failed = [one["gate"] for one in gates if not one["holds"]]
        chosen = "baseline" if failed else "candidate"
        return {
            "schemaVersion": 1,
            "comparison": self.name,
            "kind": self.kind,
            "performanceComparisonQualified": True,
            "disqualifications": [],
            "pairs": pairs,
            "gates": gates,
            "failedGates": failed,
            "decision": chosen,
            "requalification": "required" if chosen == "candidate" else "not-required",
        }

    def files(self) -> dict[str, bytes]:
        folder = f"results/settings/{self.name}"
        if self.decision is None:
            self.decision = self.decide()
        made = {
            f"{folder}/comparison.json": dump(self.data),
            f"{folder}/samples.json": dump({"schemaVersion": 1, "comparison": self.name, "samples": self.samples}),
            f"{folder}/snapshots.json": dump(
                {"schemaVersion": 1, "comparison": self.name, "snapshots": self.snapshots}
            ),
            f"{folder}/decision.json": dump(self.decision),
        }
        made.update({f"{folder}/ledgers/{name}.json": dump(ledger) for name, ledger in self.ledgers.items()})
        made.update({f"{folder}/bodies/{name}": data for name, data in self.bodies.items()})
        return made

    def index_row(self, files: dict[str, bytes]) -> dict:
        assert self.decision is not None
        folder = f"results/settings/{self.name}"
        keys = ("id", "case", "profile", "engine", "kind", "synthetic")
        return {
            **{key: self.data[key] for key in keys},
            "folder": folder,
            "decision": self.decision["decision"],
            "failedGates": self.decision["failedGates"],
            "performanceComparisonQualified": self.decision["performanceComparisonQualified"],
            "mainSamples": 144,
            "warmSamples": 108,
            "files": {
                key: sha(files[f"{folder}/{key}.json"]) for key in ("comparison", "samples", "snapshots", "decision")
            },
        }

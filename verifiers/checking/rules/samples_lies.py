"""Lies about the samples of a comparison, each coherent but for its meaning."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import List

from checking.rules.comparison import ARMS, arm_id
from checking.rules.forgery import Desk, Row, main_rows, pick


def relabel_warm_up(desk: Desk) -> str:
    """Count the last round-robin warm-up as a main request."""
    with desk.samples() as rows:
        warm = [row for row in rows if row["phase"] == "rr-warm" and arm_id(row) == "r1-a"][-1]
        warm["phase"] = "main"
    return str(warm["offer"]) + " told as main"


def swap_sample_arms(desk: Desk) -> str:
    """Exchange the arms of all samples of the first repetition."""
    with desk.samples() as rows:
        for row in rows:
            if row["repetition"] == 1:
                row["arm"] = "B" if row["arm"] == "A" else "A"
    return "arms of all samples of repetition 1 exchanged"


def exchange_arm_times(desk: Desk) -> str:
    """Give both arms of a repetition each other's main times, and decide by them."""
    with desk.samples() as rows:
        keys = ("startedSeconds", "ttftSeconds", "totalSeconds", "reasoningSeconds", "sendLagSeconds")
        for one, two in zip(main_rows(rows, "r1-a"), main_rows(rows, "r1-b")):
            for key in keys:
                one[key], two[key] = two[key], one[key]
    return "main times of r1-a and r1-b exchanged"


def drop_sample(desk: Desk) -> str:
    """Drop a main sample."""
    with desk.samples() as rows:
        gone = pick(rows, "r2-b", 7)
        rows.remove(gone)
    return str(gone["offer"]) + " dropped"


def drop_slowest(desk: Desk) -> str:
    """Put a copy of the fastest candidate sample in the place of the slowest, receipts too."""
    with desk.samples() as rows:
        mine = main_rows(rows, "r1-b")
        slow = max(mine, key=lambda row: row["ttftSeconds"] or row["totalSeconds"])
        fast = min(mine, key=lambda row: row["ttftSeconds"] or row["totalSeconds"])
        copy_exchange(desk, fast, slow)
    return "%s made a copy of %s" % (slow["offer"], fast["offer"])


def copy_exchange(desk: Desk, good: Row, bad: Row) -> None:
    """Make one sample, and its receipt, a copy of another under its own id and worker."""
    keep = {key: bad[key] for key in ("offer", "worker", "arm", "repetition", "phase", "startedSeconds")}
    old = bad["responseSha256"]
    bad.update(good)
    bad.update(keep)
    with desk.receipt(good["offer"]) as source:
        told = dict(source) if source is not None else None
    with desk.receipt(bad["offer"]) as receipt:
        if receipt is not None and told is not None:
            for key in ("responseSha256", "responseBytes", "status", "complete", "reason", "responseHeaders"):
                receipt[key] = told[key]
    if old != bad["responseSha256"]:
        desk.bench.remove(desk.path("bodies/" + old))


def add_twice(desk: Desk) -> str:
    """List a main sample twice."""
    with desk.samples() as rows:
        row = pick(rows)
        rows.insert(rows.index(row), dict(row))
    return str(row["offer"]) + " twice"


def reorder_samples(desk: Desk) -> str:
    """Exchange two samples in the list."""
    with desk.samples() as rows:
        rows[30], rows[31] = rows[31], rows[30]
    return "samples 30 and 31 exchanged"


def relabel_repetition(desk: Desk) -> str:
    """Drop the second pair and tell the third as the second."""
    with desk.samples() as rows:
        rows[:] = [row for row in rows if row["repetition"] != 2]
        for row in rows:
            if row["repetition"] == 3:
                row["repetition"] = 2
                row["offer"] = "r2" + row["offer"][2:]
    return "repetition 2 dropped, 3 told as 2"


def empty_samples(desk: Desk) -> str:
    """Empty the list of samples."""
    with desk.samples() as rows:
        del rows[:]
    return "no samples"


def both_native_on_one(desk: Desk) -> str:
    """Tell both native warm-ups of an arm as the first worker's."""
    with desk.samples() as rows:
        warm = [row for row in rows if row["phase"] == "native-warm" and arm_id(row) == "r1-a"]
        warm[1]["worker"] = warm[0]["worker"]
    return str(warm[1]["offer"]) + " told as worker-1's"


def forget_native_worker(desk: Desk) -> str:
    """Leave out the worker of a native warm-up."""
    with desk.samples() as rows:
        row = next(row for row in rows if row["phase"] == "native-warm")
        row["worker"] = None
    return str(row["offer"]) + " without a worker"


def ask_something_easier(desk: Desk) -> str:
    """Give one main request a shorter body, in its receipt too."""
    with desk.samples() as rows:
        row = pick(rows, "r3-b", 3)
        data = json.loads(desk.bench.read(desk.path("bodies/" + row["requestSha256"])).decode())
        data["max_tokens"] = 1
        text = json.dumps(data).encode()
        row["requestSha256"], row["requestBytes"] = desk.bench.body(desk.folder, text), len(text)
        with desk.receipt(row["offer"]) as told:
            if told is not None:
                told["requestSha256"], told["requestBytes"] = row["requestSha256"], len(text)
                if "content-length" in told["requestHeaders"]:
                    told["requestHeaders"]["content-length"] = str(len(text))
    return str(row["offer"]) + " asked with another body"


def drop_ttft(desk: Desk) -> str:
    """Leave out the slowest time to first text of the candidate."""
    with desk.samples() as rows:
        row = max(main_rows(rows, "r1-b"), key=lambda row: row["ttftSeconds"] or 0)
        row["ttftSeconds"] = None
    return str(row["offer"])


def time_native(desk: Desk) -> str:
    """Give a plain JSON answer a time to first text."""
    with desk.samples() as rows:
        row = next(row for row in rows if row["phase"] == "native-warm")
        row["ttftSeconds"] = row["totalSeconds"]
    return str(row["offer"])


def invent_reasoning(desk: Desk) -> str:
    """Give a reasoning time to a body without reasoning."""
    with desk.samples() as rows:
        row = pick(rows)
        row["reasoningSeconds"] = row["totalSeconds"]
    return str(row["offer"])


def exceed_total(desk: Desk) -> str:
    """Let the first text come after the last byte."""
    with desk.samples() as rows:
        row = pick(rows, "r1-a", 2)
        row["ttftSeconds"] = row["totalSeconds"] + Decimal("0.5")
    return str(row["offer"])


def zero_ttft(desk: Desk) -> str:
    """Make a time to first text zero."""
    with desk.samples() as rows:
        row = pick(rows, "r1-b", 2)
        row["ttftSeconds"] = 0
    return str(row["offer"])


def start_all_at_once(desk: Desk) -> str:
    """Let all main requests of an arm start at the same moment."""
    with desk.samples() as rows:
        mine = main_rows(rows)
        start = min(row["startedSeconds"] for row in mine)
        for row in mine:
            row["startedSeconds"] = start
    return "24 main requests of r1-a at %s s" % start


def start_backwards(desk: Desk) -> str:
    """Let the last main offer of an arm start first."""
    with desk.samples() as rows:
        mine = main_rows(rows, "r2-a")
        mine[-1]["startedSeconds"], mine[0]["startedSeconds"] = mine[0]["startedSeconds"], mine[-1]["startedSeconds"]
    return str(mine[-1]["offer"]) + " told as the first"


def copy_arm(desk: Desk) -> str:
    """Copy the main batch of the first repetition over the second: times, bodies, receipts and all."""
    with desk.samples() as rows:
        for good, bad in zip(main_rows(rows, "r1-b"), main_rows(rows, "r2-b")):
            start = good["startedSeconds"]
            copy_exchange(desk, good, bad)
            bad["startedSeconds"] = start
            bad["worker"] = good["worker"]
    source, target = arm_edges(desk)
    with desk.edit("comparison.json") as data:
        for key in ("firstMainSeconds", "lastMainSeconds", "rrWarmEndedSeconds"):
            data["arms"][target]["timeline"][key] = data["arms"][source]["timeline"][key]
        data["arms"][target]["wallSeconds"] = data["arms"][source]["wallSeconds"]
    return "main batch of r1-b copied over r2-b"


def arm_edges(desk: Desk) -> List[int]:
    """The places of r1-b and r2-b in the list of arms."""
    return [ARMS.index("r1-b"), ARMS.index("r2-b")]


def shave_times(desk: Desk) -> str:
    """Halve the times of the candidate's main batches and decide by them."""
    with desk.samples() as rows:
        for arm in ("r1-b", "r2-b", "r3-b"):
            for row in main_rows(rows, arm):
                for key in ("ttftSeconds", "totalSeconds"):
                    if row[key] is not None:
                        row[key] = (Decimal(row[key]) / 2).quantize(Decimal("0.000000001"))
    with desk.edit("comparison.json") as data:
        samples = desk.load("samples.json")["samples"]
        for arm in data["arms"]:
            mine = main_rows(samples, arm_id(arm))
            last = max(row["startedSeconds"] + row["totalSeconds"] for row in mine)
            arm["wallSeconds"] = arm["timeline"]["lastMainSeconds"] = last
    return "main times of every candidate arm halved"

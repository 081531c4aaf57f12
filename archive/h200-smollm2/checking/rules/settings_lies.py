"""Lies about the protocol and the samples of a comparison, each coherent but for its meaning."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any, List, Optional

from checking.rules.comparison import ARMS, arm_id
from checking.rules.forgery import Desk, Row, main_rows, pick


def relabel_warm_up(desk: Desk) -> str:
    """Count the last round-robin warm-up as a main request."""
    with desk.samples() as rows:
        warm = [row for row in rows if row["phase"] == "rr-warm" and arm_id(row) == "r1-a"][-1]
        warm["phase"] = "main"
    return str(warm["offer"]) + " told as main"


def swap_arm_labels(desk: Desk) -> str:
    """Exchange A and B of the second repetition in the list of arms."""
    with desk.edit("comparison.json") as data:
        one, two = data["arms"][2], data["arms"][3]
        one["arm"], two["arm"] = two["arm"], one["arm"]
    return "arms of repetition 2 exchanged"


def swap_sample_arms(desk: Desk) -> str:
    """Exchange the arms of all samples of the first repetition."""
    with desk.samples() as rows:
        for row in rows:
            if row["repetition"] == 1:
                row["arm"] = "B" if row["arm"] == "A" else "A"
    return "arms of all samples of repetition 1 exchanged"


def reorder_repetitions(desk: Desk) -> str:
    """Put the arms of the last repetition first."""
    with desk.edit("comparison.json") as data:
        data["arms"] = data["arms"][4:] + data["arms"][:4]
    return "arms of repetition 3 moved to the front"


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


def remove_body(desk: Desk) -> str:
    """Remove the stored response of a main sample."""
    with desk.samples() as rows:
        row = pick(rows, "r1-b", 2)
    desk.bench.remove(desk.path("bodies/" + row["responseSha256"]))
    return "body of %s removed" % row["offer"]


def alter_body(desk: Desk) -> str:
    """Change a byte of a stored response without renaming it."""
    with desk.samples() as rows:
        row = pick(rows, "r1-b", 4)
    data = desk.body(row)
    desk.bench.put(desk.path("bodies/" + row["responseSha256"]), data[:-2] + bytes([data[-2] ^ 1]) + data[-1:])
    return "body of %s altered" % row["offer"]


def add_body(desk: Desk) -> str:
    """Leave a body that nothing cites."""
    return "body %s added" % desk.bench.body(desk.folder, b"data: [DONE]\n\n")


def add_file(desk: Desk) -> str:
    """Leave a further file in the folder."""
    desk.bench.put(desk.path("notes.txt"), b"all is well\n")
    return "notes.txt added"


def misstate_length(desk: Desk) -> str:
    """Tell a response shorter than it is, in sample and receipt alike."""
    with desk.samples() as rows:
        row = pick(rows, "r2-a", 5)
        row["responseBytes"] -= 1
        with desk.receipt(row["offer"]) as told:
            if told is not None:
                told["responseBytes"] -= 1
                if "content-length" in told["responseHeaders"]:
                    told["responseHeaders"]["content-length"] = str(told["responseBytes"])
    return str(row["offer"]) + " a byte shorter"


def rewrite(desk: Desk, arm: str, place: int, change: Any, update: Any = None) -> Optional[str]:
    """Rewrite a main response, its hash and its receipt; `change` gives the new bytes, or None."""
    with desk.samples() as rows:
        row = pick(rows, arm, place)
        data = change(desk.body(row))
        if data is None or data == desk.body(row):
            return None
        desk.answer_with(row, data)
        if update:
            row.update(update)
    return str(row["offer"]) + " answered with another body"


def cap_quietly(desk: Desk) -> Optional[str]:
    """Let a body end by length and still call it normal."""
    return rewrite(desk, "r1-b", 1, lambda data: data.replace(b'"stop"', b'"length"'), {"finishReason": "length"})


def cut_quietly(desk: Desk) -> Optional[str]:
    """Cut a stream before its end and still call it normal."""
    return rewrite(desk, "r1-b", 6, lambda data: data[: data.rstrip().rfind(b"\n\n") + 2])


def break_quietly(desk: Desk) -> Optional[str]:
    """Put a broken event into a stream and still call it normal."""
    return rewrite(desk, "r2-b", 6, lambda data: b"data: {broken\n\n" + data)


def error_quietly(desk: Desk) -> Optional[str]:
    """Put an error event into a stream and still call it normal."""
    return rewrite(desk, "r3-a", 6, lambda data: b'event: error\ndata: {"error": {"message": "no"}}\n\n' + data)


def double_key(desk: Desk) -> Optional[str]:
    """Write a key of a chunk twice and still call the answer normal."""
    return rewrite(desk, "r3-a", 7, lambda data: data.replace(b'"choices"', b'"choices": [], "choices"', 1))


def raise_tokens(desk: Desk) -> str:
    """Tell more completion tokens than the body reports."""
    with desk.samples() as rows:
        for row in main_rows(rows, "r1-b"):
            row["completionTokens"] = (row["completionTokens"] or 0) + 1
    return "a token more for every main sample of r1-b"


def raise_prompt_tokens(desk: Desk) -> str:
    """Tell more prompt tokens than the body reports."""
    with desk.samples() as rows:
        row = pick(rows)
        row["promptTokens"] = (row["promptTokens"] or 0) + 1
    return str(row["offer"])


def drop_usage(desk: Desk) -> Optional[str]:
    """Take the usage out of a body and keep its tokens in the sample."""

    def change(data: bytes) -> Optional[bytes]:
        return data.replace(b'"usage"', b'"usagf"') if b'"usage"' in data else None

    return rewrite(desk, "r2-a", 8, change)


def invent_finish(desk: Desk) -> str:
    """Tell another finish reason than the body's."""
    with desk.samples() as rows:
        row = pick(rows, "r2-b", 9)
        row["finishReason"] = "eos"
    return str(row["offer"])


def call_failed_normal(desk: Desk) -> str:
    """Tell a timeout of the client as a timeout of nobody: the class alone is changed."""
    with desk.samples() as rows:
        row = pick(rows, "r1-a", 3)
        row["classification"] = "CAPPED" if row["classification"] != "CAPPED" else "NORMAL"
    return str(row["offer"])


def drop_status(desk: Desk) -> str:
    """Leave out the status of a complete exchange."""
    with desk.samples() as rows:
        row = pick(rows, "r1-a", 4)
        row["status"] = None
    return str(row["offer"])


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


def shave_memory(desk: Desk) -> str:
    """Copy the first device's row over the second's, alias and all."""
    with desk.edit("snapshots.json") as data:
        devices = data["snapshots"][1]["devices"]
        devices[1] = dict(devices[0])
    return "device-1 told twice in r1-b"


def drop_snapshot(desk: Desk) -> str:
    """Drop the last snapshot."""
    with desk.edit("snapshots.json") as data:
        data["snapshots"].pop()
    return "snapshot of r3-b dropped"


def mix_sources(desk: Desk) -> Optional[str]:
    """Take one snapshot from another source."""
    with desk.edit("snapshots.json") as data:
        one = data["snapshots"][3]
        one["source"] = "process-rss" if one["source"] != "process-rss" else "synthetic"
    return "source of r2-a altered"


def move_snapshot(desk: Desk) -> str:
    """Take the snapshot after the load."""
    arms = desk.load("comparison.json")["arms"]
    with desk.edit("snapshots.json") as data:
        data["snapshots"][1]["takenSeconds"] = arms[1]["timeline"]["lastMainSeconds"]
    return "snapshot of r1-b moved behind its main batch"


def hurry_snapshot(desk: Desk) -> str:
    """Take the snapshot before the native warm-ups."""
    with desk.edit("snapshots.json") as data:
        data["snapshots"][0]["takenSeconds"] = 0
    return "snapshot of r1-a moved to the start"


def hide_memory(desk: Desk) -> str:
    """Leave out a figure without a reason."""
    with desk.edit("snapshots.json") as data:
        data["snapshots"][1]["devices"][0].update(usedBytes=None, reason=None)
    return "device-1 of r1-b not read, without a reason"


def zero_memory(desk: Desk) -> str:
    """Write 0 where nothing was read."""
    with desk.edit("snapshots.json") as data:
        data["snapshots"][1]["devices"][0]["usedBytes"] = 0
    return "device-1 of r1-b uses 0 bytes"


def overfill_memory(desk: Desk) -> Optional[str]:
    """Use more than there is."""
    with desk.edit("snapshots.json") as data:
        row = data["snapshots"][0]["devices"][0]
        if row["totalBytes"] is None or row["usedBytes"] is None:
            row["usedBytes"], row["totalBytes"], row["reason"] = 2, 1, None
        else:
            row["usedBytes"] = row["totalBytes"] + 1
    return "device-1 of r1-a over its total"


def deny_synthetic(desk: Desk) -> Optional[str]:
    """Turn the synthetic mark of a comparison round, in the index too."""
    with desk.edit("comparison.json") as data:
        data["synthetic"] = not data["synthetic"]
    desk.index(synthetic=data["synthetic"])
    return "synthetic told as %s" % data["synthetic"]


def launch_alike(desk: Desk) -> str:
    """Launch a candidate arm with the baseline's value."""
    with desk.edit("comparison.json") as data:
        setting = data["setting"]
        for launch in data["arms"][1]["launches"]:
            words = launch["arguments"]
            launch["arguments"] = [
                word.replace(setting["candidate"], setting["baseline"])
                if word == setting["candidate"] or word == setting["argument"] + "=" + setting["candidate"]
                else word
                for word in words
            ]
            name = setting["argument"][4:] if setting["argument"].startswith("ENV:") else ""
            if name in launch["environment"]:
                launch["environment"][name] = setting["baseline"]
    return "r1-b launched with the baseline's value"


def change_two_settings(desk: Desk) -> str:
    """Launch one candidate arm with a further argument."""
    with desk.edit("comparison.json") as data:
        for launch in data["arms"][1]["launches"]:
            launch["arguments"].append("--one-more")
    return "r1-b launched with --one-more"


def change_environment(desk: Desk) -> str:
    """Launch one worker with a further variable."""
    with desk.edit("comparison.json") as data:
        data["arms"][5]["launches"][0]["environment"]["FASTER"] = "1"
    return "r3-b worker-1 launched with FASTER=1"


def drop_client_lag(desk: Desk) -> str:
    """Say that a client was in time whose own figures say otherwise."""
    with desk.edit("comparison.json") as data:
        client = data["arms"][0]["client"]
        client.update(
            late=False, loopLagP99Seconds=client["limitSeconds"] + 1, loopLagMaxSeconds=client["limitSeconds"] + 1
        )
    return "r1-a a second over its limit and not late"


def swap_client_lag(desk: Desk) -> str:
    """Make the 99th percentile of the lag greater than the greatest."""
    with desk.edit("comparison.json") as data:
        client = data["arms"][0]["client"]
        client["sendLagP99Seconds"] = client["sendLagMaxSeconds"] + Decimal("0.000001")
    return "r1-a"


def invent_log_finding(desk: Desk) -> str:
    """Put a finding before the main window, so that it need not count."""
    with desk.edit("comparison.json") as data:
        worker = data["workers"][0]["alias"]
        data["arms"][0]["logFindings"].append(
            {"worker": worker, "pattern": "ERROR", "line": "an error", "atSeconds": 0}
        )
    return "an error at 0 s of r1-a"


def forget_a_reading(desk: Desk) -> str:
    """Control the date on one worker alone."""
    with desk.edit("comparison.json") as data:
        data["dateControl"] = {
            "timeZone": "UTC",
            "comparisonDate": "2026-01-01",
            "nativeTokenIds": [
                {"repetition": 1, "arm": "A", "worker": "worker-1", "tokenIdsSha256": "0" * 64, "tokens": 1}
            ],
        }
    return "one reading of the rendered input"


def late_arm(desk: Desk) -> str:
    """Let the third arm begin while the second still ran."""
    with desk.edit("comparison.json") as data:
        data["arms"][2]["startedAt"] = data["arms"][1]["startedAt"][:-7] + "%06dZ" % (
            int(data["arms"][1]["startedAt"][-7:-1]) + 1
        )
    return "arm 3 a microsecond after arm 2"


def no_such_day(desk: Desk) -> str:
    """Let the first arm begin on a day that does not exist."""
    with desk.edit("comparison.json") as data:
        data["arms"][0]["startedAt"] = "2024-02-30T00:00:00.000000Z"
    return "30 February"


def swap_moments(desk: Desk) -> str:
    """Let the engine be ready before it was started."""
    with desk.edit("comparison.json") as data:
        line = data["arms"][0]["timeline"]
        line["readySeconds"], line["engineStartedSeconds"] = 0, line["readySeconds"]
    return "ready before started"


def shorten_wall(desk: Desk) -> str:
    """Halve the wall time of an arm."""
    with desk.edit("comparison.json") as data:
        data["arms"][1]["wallSeconds"] = (Decimal(data["arms"][1]["wallSeconds"]) / 2).quantize(Decimal("0.000001"))
    return "wall time of r1-b halved"


def shorten_main(desk: Desk) -> str:
    """Halve the last main moment and the wall time alike."""
    with desk.edit("comparison.json") as data:
        arm = data["arms"][1]
        last = arm["timeline"]["firstMainSeconds"] + Decimal("0.001")
        arm["wallSeconds"] = arm["timeline"]["lastMainSeconds"] = last
    return "main batch of r1-b told a millisecond long"


def stretch_warm_up(desk: Desk) -> str:
    """Let the round-robin warm-ups end before they did."""
    with desk.edit("comparison.json") as data:
        line = data["arms"][0]["timeline"]
        line["rrWarmEndedSeconds"] = line["snapshotSeconds"]
    return "round-robin warm-ups of r1-a over at the snapshot"

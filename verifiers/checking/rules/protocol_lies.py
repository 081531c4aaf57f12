"""Lies about how a comparison was run, each coherent but for its meaning."""

from __future__ import annotations

from decimal import Decimal
from typing import Optional

from checking.rules.forgery import Desk


def add_file(desk: Desk) -> str:
    """Leave a further file in the folder."""
    desk.bench.put(desk.path("notes.txt"), b"all is well\n")
    return "notes.txt added"


def rename_self(desk: Desk) -> str:
    """Give a comparison another id than its folder."""
    with desk.edit("comparison.json") as data:
        data["id"] = "another"
    return "id told as another"


def rename_samples(desk: Desk) -> str:
    """Name another comparison in samples.json."""
    with desk.edit("samples.json") as data:
        data["comparison"] = "another"
    return "samples told as another's"


def rename_ledger(desk: Desk) -> str:
    """Write the other worker's alias into a ledger."""
    with desk.edit(desk.ledger_names()[0]) as ledger:
        ledger["worker"] = "worker-2"
    return "ledger of worker-1 told as worker-2's"


def swap_devices(desk: Desk) -> str:
    """Exchange the devices of the two workers."""
    with desk.edit("comparison.json") as data:
        one, two = data["workers"]
        one["device"], two["device"] = two["device"], one["device"]
    return "devices exchanged"


def swap_arm_labels(desk: Desk) -> str:
    """Exchange A and B of the second repetition in the list of arms."""
    with desk.edit("comparison.json") as data:
        one, two = data["arms"][2], data["arms"][3]
        one["arm"], two["arm"] = two["arm"], one["arm"]
    return "arms of repetition 2 exchanged"


def reorder_repetitions(desk: Desk) -> str:
    """Put the arms of the last repetition first."""
    with desk.edit("comparison.json") as data:
        data["arms"] = data["arms"][4:] + data["arms"][:4]
    return "arms of repetition 3 moved to the front"


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


def zero_memory(desk: Desk) -> str:
    """Write 0 where nothing was read."""
    with desk.edit("snapshots.json") as data:
        data["snapshots"][1]["devices"][0]["usedBytes"] = 0
    return "device-1 of r1-b uses 0 bytes"


def hide_memory(desk: Desk) -> str:
    """Leave out a figure without a reason."""
    with desk.edit("snapshots.json") as data:
        data["snapshots"][1]["devices"][0].update(usedBytes=None, reason=None)
    return "device-1 of r1-b not read, without a reason"


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

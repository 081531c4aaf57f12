"""Lies about receipts, decisions and the settings index, each coherent but for its meaning."""

from __future__ import annotations

from decimal import Decimal
from typing import Any, Callable, List, Optional

from checking.damage import Bench
from checking.rules.forgery import INDEX, SETTINGS, Desk, Row, first, main_rows, pick

ZEROS = "0" * 64


def _first_ledger(desk: Desk) -> str:
    return desk.ledger_names()[0]


def _traffic(rows: List[Row]) -> Optional[Row]:
    return next((row for row in rows if row["traffic"]), None)


def alter_receipt_hash(desk: Desk) -> Optional[str]:
    """Alter the response hash of the first receipt; the body under that hash does not exist."""
    name = _first_ledger(desk)
    with desk.edit(name) as ledger:
        row = _traffic(ledger["receipts"])
        if row is None:
            return None
        row["responseSha256"] = ("0" if row["responseSha256"][0] != "0" else "1") + row["responseSha256"][1:]
    return "%s#%d" % (name, row["sequence"])


def move_receipt(desk: Desk) -> Optional[str]:
    """Move a receipt to the other worker."""
    one, two = desk.ledger_names("r1-a")[:2]
    with desk.edit(one) as source, desk.edit(two) as target:
        row = source["receipts"].pop()
        row["sequence"] = len(target["receipts"]) + 1
        target["receipts"].append(row)
    return "last receipt of %s moved to %s" % (one, two)


def drop_receipt(desk: Desk) -> str:
    """Drop the last receipt of a ledger."""
    with desk.edit(desk.ledger_names("r2-b")[0]) as ledger:
        row = ledger["receipts"].pop()
    return "receipt %d of r2-b dropped" % row["sequence"]


def repeat_receipt(desk: Desk) -> str:
    """Append a copy of a receipt."""
    with desk.edit(desk.ledger_names("r1-b")[0]) as ledger:
        row = dict(ledger["receipts"][-1])
        row["sequence"] += 1
        ledger["receipts"].append(row)
    return "receipt %d told twice" % (row["sequence"] - 1)


def empty_ledger(desk: Desk) -> str:
    """Empty a ledger."""
    with desk.edit(desk.ledger_names("r3-a")[0]) as ledger:
        del ledger["receipts"][:]
    return "ledger of r3-a emptied"


def renumber(desk: Desk) -> str:
    """Leave a gap in the numbers of a ledger."""
    with desk.edit(_first_ledger(desk)) as ledger:
        for row in ledger["receipts"][5:]:
            row["sequence"] += 1
    return "number 6 left out"


def hide_traffic(desk: Desk) -> str:
    """Call an exchange of traffic a control."""
    with desk.edit(_first_ledger(desk)) as ledger:
        row = _traffic(ledger["receipts"])
        assert row is not None
        row["traffic"] = False
    return "receipt %d told as a control" % row["sequence"]


def cut_receipt(desk: Desk) -> str:
    """Keep an incomplete exchange without its reason."""
    with desk.edit(_first_ledger(desk)) as ledger:
        ledger["receipts"][0].update(complete=False, reason=None)
    return "receipt 1 incomplete without a reason"


def complete_with_reason(desk: Desk) -> str:
    """Call an exchange complete that its reason says was cut."""
    with desk.edit(_first_ledger(desk)) as ledger:
        ledger["receipts"][0].update(complete=True, reason="upstream-closed")
    return "receipt 1 complete though upstream closed"


def call_partial_complete(desk: Desk) -> Optional[str]:
    """Let the recorder have seen a cut exchange that the client calls complete."""
    with desk.samples() as rows:
        row = pick(rows, "r2-a", 1)
    with desk.receipt(row["offer"]) as told:
        if told is None:
            return None
        told.update(complete=False, reason="upstream-closed")
    return str(row["offer"]) + " cut before the recorder"


def lose_header(desk: Desk) -> Optional[str]:
    """Give a receipt the content length of another body."""
    with desk.edit(_first_ledger(desk)) as ledger:
        ledger["receipts"][0]["requestHeaders"]["content-length"] = "7"
    return "content-length 7"


def other_request_header(desk: Desk) -> Optional[str]:
    """Give a receipt another request id than its header carries."""
    with desk.edit(_first_ledger(desk)) as ledger:
        ledger["receipts"][0]["requestHeaders"]["x-request-id"] = "r1-a-main-024"
    return "x-request-id r1-a-main-024"


def end_first(desk: Desk) -> str:
    """Let an exchange end before it began."""
    with desk.edit(_first_ledger(desk)) as ledger:
        row = ledger["receipts"][2]
        row["startedSeconds"], row["endedSeconds"] = row["endedSeconds"], row["startedSeconds"]
    return "receipt 3 ends before it begins"


def copy_receipt_times(desk: Desk) -> str:
    """Give a receipt the times of the one before."""
    with desk.edit(_first_ledger(desk)) as ledger:
        one, two = ledger["receipts"][3:5]
        two["startedSeconds"], two["endedSeconds"] = one["startedSeconds"], one["endedSeconds"]
    return "receipt 5 with the times of 4"


def swap_ids(desk: Desk) -> Optional[str]:
    """Exchange the request ids of two receipts."""
    with desk.edit(desk.ledger_names("r1-a")[0]) as ledger:
        one, two = ledger["receipts"][-2:]
        if one["requestId"] is None or one["responseSha256"] == two["responseSha256"]:
            return None
        one["requestId"], two["requestId"] = two["requestId"], one["requestId"]
        for row in (one, two):
            row["requestHeaders"]["x-request-id"] = row["requestId"]
    return "request ids of the last two receipts exchanged"


def move_worker(desk: Desk) -> Optional[str]:
    """Tell a sample as the other worker's."""
    with desk.samples() as rows:
        row = pick(rows, "r1-a", 5)
        if row["worker"] is None:
            return None
        row["worker"] = "worker-2" if row["worker"] == "worker-1" else "worker-1"
    return str(row["offer"]) + " told as the other worker's"


def unbalance(desk: Desk) -> Optional[str]:
    """Let one worker serve two main requests of the other: samples, receipts and ids alike."""
    one, two = desk.ledger_names("r1-a")[:2]
    moved = []
    with desk.edit(one) as source, desk.edit(two) as target:
        for _ in range(2):
            row = source["receipts"].pop()
            row["sequence"] = len(target["receipts"]) + 1
            target["receipts"].append(row)
            moved.append(row["requestId"])
        worker = target["worker"]
    with desk.samples() as rows:
        for row in rows:
            if row["offer"] in moved:
                row["worker"] = worker
    return "two main requests of r1-a moved to " + str(worker)


def rename_ledger(desk: Desk) -> str:
    """Write the other worker's alias into a ledger."""
    with desk.edit(_first_ledger(desk)) as ledger:
        ledger["worker"] = "worker-2"
    return "ledger of worker-1 told as worker-2's"


def halve_client_times(desk: Desk) -> str:
    """Let the client of one arm have taken half as long as its recorder."""
    with desk.samples() as rows:
        for row in main_rows(rows, "r1-b"):
            row["totalSeconds"] = (Decimal(row["totalSeconds"]) / 2).quantize(Decimal("0.000000001"))
            if row["ttftSeconds"] is not None:
                row["ttftSeconds"] = min(row["ttftSeconds"], row["totalSeconds"])
        last = max(row["startedSeconds"] + row["totalSeconds"] for row in main_rows(rows, "r1-b"))
    with desk.edit("comparison.json") as data:
        data["arms"][1]["wallSeconds"] = data["arms"][1]["timeline"]["lastMainSeconds"] = last
    return "totals of r1-b halved"


def flip_decision(desk: Desk) -> str:
    """Turn the decision round, in the index too."""
    with desk.edit("decision.json") as data:
        data["decision"] = "baseline" if data["decision"] == "candidate" else "candidate"
        data["requalification"] = "required" if data["decision"] == "candidate" else "not-required"
    desk.index(decision=data["decision"])
    return "decision told as " + str(data["decision"])


def flip_everything(desk: Desk) -> str:
    """Turn the decision round with its gate table, its failed gates and the index."""
    with desk.edit("decision.json") as data:
        take = data["decision"] == "baseline"
        for gate in data["gates"]:
            gate["holds"] = take
            for row in gate["rows"]:
                row["holds"] = take
        data["failedGates"] = [] if take else [gate["gate"] for gate in data["gates"]]
        data["decision"] = "candidate" if take else "baseline"
        data["requalification"] = "required" if take else "not-required"
    desk.index(decision=data["decision"], failedGates=data["failedGates"])
    return "everything turned to " + str(data["decision"])


def _number(value: Any, by: str) -> Any:
    return (Decimal(value) * Decimal(by)).quantize(Decimal("0.000000001"))


def better_tail(desk: Desk) -> Optional[str]:
    """Tell the candidate's p95 a fifth better in pair and gates."""
    with desk.edit("decision.json") as data:
        side = data["pairs"][0]["candidate"]
        if side["p95TtftSeconds"] is None:
            return None
        side["p95TtftSeconds"] = _number(side["p95TtftSeconds"], "0.8")
    return "p95 of r1-b a fifth shorter"


def other_percentile(desk: Desk) -> Optional[str]:
    """Take the 22nd of 24 for the p95 instead of the 23rd."""
    rows = main_rows(desk.load("samples.json")["samples"], "r2-a")
    values = sorted(row["totalSeconds"] for row in rows)
    with desk.edit("decision.json") as data:
        data["pairs"][1]["baseline"]["p95TotalSeconds"] = values[21]
    return "rank 22 told as p95" if values[21] != values[22] else None


def other_tokens(desk: Desk) -> Optional[str]:
    """Tell another token total."""
    with desk.edit("decision.json") as data:
        side = data["pairs"][2]["baseline"]
        side["completionTokens"] = (side["completionTokens"] or 0) + 1
    return "a token more in r3-a"


def other_memory(desk: Desk) -> Optional[str]:
    """Tell another memory figure in a pair."""
    with desk.edit("decision.json") as data:
        devices = data["pairs"][1]["candidate"]["devices"]
        device = sorted(devices)[0]
        devices[device] = (devices[device] or 0) + 1
    return "a byte more on %s in r2-b" % device


def other_wall(desk: Desk) -> Optional[str]:
    """Tell a shorter wall time in a pair."""
    with desk.edit("decision.json") as data:
        side = data["pairs"][0]["candidate"]
        side["wallSeconds"] = _number(side["wallSeconds"], "0.5")
    return "wall time of r1-b halved"


def flip_gate(desk: Desk) -> Optional[str]:
    """Turn one gate round."""
    with desk.edit("decision.json") as data:
        gate = data["gates"][0]
        gate["holds"] = not gate["holds"]
    return "%s told as %s" % (gate["gate"], gate["holds"])


def other_ratio(desk: Desk) -> Optional[str]:
    """Tell another exact ratio."""
    with desk.edit("decision.json") as data:
        data["gates"][1]["rows"][0]["relative"] = "99/100"
    return "ratio 99/100"


def drop_gate_row(desk: Desk) -> Optional[str]:
    """Drop the worst row of a gate."""
    with desk.edit("decision.json") as data:
        data["gates"][1]["rows"].pop()
    return "last row of the second gate dropped"


def other_gate(desk: Desk) -> Optional[str]:
    """Put an easier gate in the place of one."""
    with desk.edit("decision.json") as data:
        data["gates"][1] = dict(data["gates"][0])
    return "the first gate told twice"


def forget_failed(desk: Desk) -> Optional[str]:
    """Change the list of failed gates alone."""
    with desk.edit("decision.json") as data:
        data["failedGates"] = [] if data["failedGates"] else ["token-volume"]
    desk.index(failedGates=data["failedGates"])
    return "failed gates told as %s" % data["failedGates"]


def excuse(desk: Desk) -> Optional[str]:
    """Change the list of disqualifications alone."""
    with desk.edit("decision.json") as data:
        data["disqualifications"] = [] if data["disqualifications"] else [{"code": "WALL_CLOCK", "detail": "stepped"}]
    return "disqualifications changed"


def raise_qualified(desk: Desk) -> Optional[str]:
    """Turn performanceComparisonQualified round, in the index too."""
    with desk.edit("decision.json") as data:
        data["performanceComparisonQualified"] = not data["performanceComparisonQualified"]
    desk.index(performanceComparisonQualified=data["performanceComparisonQualified"])
    return "qualified told as %s" % data["performanceComparisonQualified"]


def keep_log_error(desk: Desk) -> str:
    """Record an engine error in the main window and leave the comparison qualified."""
    with desk.edit("comparison.json") as data:
        arm = data["arms"][1]
        at = arm["timeline"]["firstMainSeconds"]
        arm["logFindings"].append({"worker": "worker-1", "pattern": "ERROR", "line": "an error", "atSeconds": at})
    return "an engine error inside the main window of r1-b"


def step_clock(desk: Desk) -> str:
    """Record a stepped wall clock and leave the comparison qualified."""
    with desk.edit("comparison.json") as data:
        data["arms"][1]["client"]["wallClockStepped"] = True
    return "wall clock of r1-b stepped"


def be_late(desk: Desk) -> str:
    """Record a late client and leave the comparison qualified."""
    with desk.edit("comparison.json") as data:
        data["arms"][1]["client"]["late"] = True
    return "client of r1-b late"


def other_kind(desk: Desk) -> Optional[str]:
    """Name another kind in the decision."""
    with desk.edit("decision.json") as data:
        data["kind"] = "memory" if data["kind"] == "sequence-cap" else "sequence-cap"
    return "kind told as " + str(data["kind"])


def drop_requalification(desk: Desk) -> Optional[str]:
    """Take the requalification off a candidate, or put one on a baseline."""
    with desk.edit("decision.json") as data:
        data["requalification"] = "required" if data["requalification"] == "not-required" else "not-required"
    return "requalification told as " + str(data["requalification"])


def rename_samples(desk: Desk) -> str:
    """Name another comparison in samples.json."""
    with desk.edit("samples.json") as data:
        data["comparison"] = "another"
    return "samples told as another's"


def rename_self(desk: Desk) -> str:
    """Give a comparison another id than its folder."""
    with desk.edit("comparison.json") as data:
        data["id"] = "another"
    return "id told as another"


def swap_devices(desk: Desk) -> str:
    """Exchange the devices of the two workers."""
    with desk.edit("comparison.json") as data:
        one, two = data["workers"]
        one["device"], two["device"] = two["device"], one["device"]
    return "devices exchanged"


def _index(bench: Bench, change: Callable[[List[Row]], Any]) -> Optional[str]:
    """A lie in the settings index alone; sums are sealed, its hashes are not put right."""
    if first(bench) is None:
        return None
    with bench.edit(INDEX) as data:
        if change(data["comparisons"]) is False:
            return None
    bench.reseal_sums()
    return INDEX


def drop_row(bench: Bench) -> Optional[str]:
    """Drop the last comparison from the index."""
    return _index(bench, lambda rows: rows.pop())


def invent_row(bench: Bench) -> Optional[str]:
    """List a comparison that is not there."""
    return _index(bench, lambda rows: rows.append(dict(rows[-1], id="zz-invented", folder=SETTINGS + "/zz-invented")))


def _reverse(rows: List[Row]) -> bool:
    rows.reverse()
    return len(rows) > 1


def reverse_index(bench: Bench) -> Optional[str]:
    """Reverse the index."""
    return _index(bench, _reverse)


def twist_hash(bench: Bench) -> Optional[str]:
    """Write another hash into the index."""
    return _index(bench, lambda rows: rows[0]["files"].update(samples=ZEROS))


def twist_row(bench: Bench) -> Optional[str]:
    """Turn a decision round in the index alone."""
    others = {"baseline": "candidate", "candidate": "baseline"}
    return _index(bench, lambda rows: rows[0].update(decision=others[rows[0]["decision"]]))


def twist_profile(bench: Bench) -> Optional[str]:
    """List a comparison under another profile."""
    return _index(bench, lambda rows: rows[0].update(profile="another-profile"))


def stray_file(bench: Bench) -> Optional[str]:
    """Leave a file beside the comparisons."""
    bench.put(SETTINGS + "/summary.txt", b"all good\n")
    return SETTINGS + "/summary.txt"


def copy_comparison(bench: Bench) -> Optional[str]:
    """Package a comparison twice under two names, in index and manifest alike."""
    desk = first(bench)
    if desk is None:
        return None
    twin = desk.folder + "-again"
    old, new = desk.folder.rsplit("/", 1)[1], twin.rsplit("/", 1)[1]
    for name in bench.below(desk.folder):
        bench.put(twin + name[len(desk.folder) :], bench.read(name))
    for name, key in (
        ("comparison.json", "id"),
        ("samples.json", "comparison"),
        ("snapshots.json", "comparison"),
        ("decision.json", "comparison"),
    ):
        with bench.edit("%s/%s" % (twin, name)) as data:
            data[key] = new
    with bench.edit(INDEX) as data:
        row = next(row for row in data["comparisons"] if row["id"] == old)
        data["comparisons"].append(dict(row, id=new, folder=twin, files=dict(row["files"])))
        data["comparisons"].sort(key=lambda row: str(row["id"]))
    with bench.edit("manifest.json") as data:
        for key, more in (("comparisons", 1), ("mainSamples", 144), ("warmSamples", 108)):
            data["counts"][key] += more
    return "%s packaged again as %s" % (old, new)

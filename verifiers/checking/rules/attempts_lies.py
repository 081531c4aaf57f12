"""Lies about functional attempts and their index, each coherent but for its meaning."""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Optional

from checking.damage import Bench
from checking.rules import index_lies
from checking.rules.converged import INDEX, PARENT, SETUP, TABLE
from checking.rules.forgery import Desk

Row = Dict[str, Any]
Lie = Callable[[Bench], Optional[str]]
NAMED = (("attempt.json", "id"), ("attempt.json", "run"), ("samples.json", "comparison"), ("controls.json", "attempt"))


def _desks(bench: Bench, wanted: Callable[[Row], Any]) -> Optional[Desk]:
    for folder in bench.folders(PARENT):
        desk = Desk(bench, folder)
        if bench.has(desk.path("attempt.json")) and wanted(desk.load("attempt.json")):
            return desk
    return None


def _index(desk: Desk, **values: Any) -> None:
    with desk.bench.edit(INDEX) as index:
        for row in index["attempts"]:
            if row["folder"] == desk.folder:
                row.update(values)


def lie(wanted: Callable[[Row], Any], tell: Callable[[Desk], Optional[str]]) -> Lie:
    """A coherent forgery of the first attempt that is wanted."""

    def damage(bench: Bench) -> Optional[str]:
        desk = _desks(bench, wanted)
        if desk is None:
            return None
        told = tell(desk)
        return None if told is None else "%s: %s" % (desk.folder, told)

    return damage


def _told(wanted: Callable[[Row], Any], **values: Any) -> Lie:
    """A forgery that sets values of attempt.json, and of its index row where those are there too."""

    def tell(desk: Desk) -> str:
        with desk.edit("attempt.json") as data:
            data.update(values)
        row_keys = ("outcome", "reason", "startedAt", "endedAt", "ended", "synthetic", "surface", "engine")
        _index(desk, **{key: value for key, value in values.items() if key in row_keys})
        return ", ".join("%s %s" % item for item in sorted(values.items()))

    return lie(wanted, tell)


def ran(data: Row) -> Any:
    """Wanted: an attempt that ended, with samples."""
    return data["requests"] and data["ended"]


def _succeeded(data: Row) -> Any:
    """Wanted: a success."""
    return data["outcome"] == "SUCCESS"


def _blocked(data: Row) -> Any:
    """Wanted: an attempt that failed in set-up."""
    return data["outcome"] in SETUP


def exact(data: Row) -> Any:
    """Wanted: an attempt on surface exact that ran."""
    return data["exact"] is not None and data["requests"]


def _partial(data: Row) -> Any:
    """Wanted: one-prefill engagement."""
    return data["outcome"] == "EXACT_PARTIAL_ONE_PREFILL"


def _sample(change: Callable[[Desk, Row], Any]) -> Callable[[Desk], Optional[str]]:
    def tell(desk: Desk) -> str:
        with desk.samples() as rows:
            change(desk, rows[0])
        return str(rows[0]["offer"])

    return tell


def _attempt(change: Callable[[Row], Any]) -> Callable[[Desk], Optional[str]]:
    def tell(desk: Desk) -> Optional[str]:
        with desk.edit("attempt.json") as data:
            change(data)
        return "attempt.json"

    return tell


def _ledger(change: Callable[[List[Row]], Any]) -> Callable[[Desk], Optional[str]]:
    def tell(desk: Desk) -> Optional[str]:
        name = desk.ledger_names()[0]
        with desk.edit(name) as ledger:
            change(ledger["receipts"])
        return name

    return tell


def _control(
    change: Callable[[Row], Any], wanted: Callable[[Row], Any] = lambda one: True
) -> Callable[[Desk], Optional[str]]:
    def tell(desk: Desk) -> Optional[str]:
        with desk.edit("controls.json") as data:
            one = next((one for one in data["controls"] if wanted(one)), None)
            if one is not None:
                change(one)
        return None if one is None else str(one["id"])

    return tell


def _cap(desk: Desk, row: Row) -> None:
    desk.answer_with(row, desk.body(row).replace(b'"stop"', b'"length"'))
    row["finishReason"] = "length"


def _break(desk: Desk, row: Row) -> None:
    desk.answer_with(row, b"data: {broken\n\n")


def _add_file(desk: Desk) -> str:
    desk.bench.put(desk.path("notes.txt"), b"all is well\n")
    return "notes.txt"


def _spare_body(desk: Desk) -> str:
    return desk.bench.body(desk.folder, b"nobody asked")


def _remove_body(desk: Desk) -> str:
    row = desk.load("samples.json")["samples"][0]
    desk.bench.remove(desk.path("bodies/" + row["responseSha256"]))
    return str(row["offer"])


def _alter_body(desk: Desk) -> str:
    row = desk.load("samples.json")["samples"][0]
    desk.bench.put(desk.path("bodies/" + row["responseSha256"]), desk.body(row) + b"\n")
    return str(row["offer"])


def _alter_hash(rows: List[Row]) -> None:
    row = next(row for row in rows if row["traffic"])
    row["responseSha256"] = ("0" if row["responseSha256"][0] != "0" else "1") + row["responseSha256"][1:]


def _drop(rows: List[Row]) -> None:
    rows.remove(next(row for row in rows if row["traffic"]))
    for number, row in enumerate(rows, 1):
        row["sequence"] = number


def _rename(rows: List[Row]) -> None:
    row = next(row for row in rows if row["traffic"])
    row["requestId"] = row["requestHeaders"]["x-request-id"] = "attempt-999"


def _shift(rows: List[Row]) -> None:
    for row in rows:
        row["sequence"] += 1


def _hide(rows: List[Row]) -> None:
    next(row for row in rows if row["traffic"])["traffic"] = False


def _longer(desk: Desk, row: Row) -> None:
    row["responseBytes"] += 1


def _promote_partial(desk: Desk) -> str:
    with desk.edit("attempt.json") as data:
        data.update(outcome="SUCCESS", reason="OK", message=None)
        data["scope"].update(accepted=True, modes=["exact"])
    _index(desk, outcome="SUCCESS", reason="OK", accepted=True)
    return "one-prefill engagement told a success"


def _forget_idle(data: Row) -> None:
    told = data["exact"]["trafficPerWorker"]
    data["exact"]["trafficPerWorker"] = {worker: count for worker, count in told.items() if count}


def _accept(desk: Desk) -> str:
    with desk.edit("attempt.json") as data:
        data["scope"].update(accepted=True, modes=[data["surface"]])
    _index(desk, accepted=True)
    return "accepted"


def _lose_half(desk: Desk) -> str:
    one, two = desk.ledger_names()[:2]
    with desk.edit(two) as ledger:
        ledger["receipts"] = [row for row in ledger["receipts"] if not row["traffic"]]
        for number, row in enumerate(ledger["receipts"], 1):
            row["sequence"] = number
        gone = ledger["worker"]
    with desk.samples() as rows:
        rows[:] = [row for row in rows if row["worker"] != gone]
        for number, row in enumerate(rows, 1):
            with desk.receipt(row["offer"]) as receipt:
                row["offer"] = "attempt-%03d" % number
                if receipt is not None:
                    receipt["requestId"] = receipt["requestHeaders"]["x-request-id"] = row["offer"]
    with desk.edit("attempt.json") as data:
        data["requests"] = len(rows)
        data["counts"] = {"NORMAL": len(rows)}
    return "one worker's half of %s dropped" % one


def package_twice(bench: Bench) -> Optional[str]:
    """Package an attempt twice under another run."""
    desk = _desks(bench, lambda data: sum(data["counts"].values()) > 1)
    return None if desk is None else index_lies.package_again(TABLE, NAMED, desk.folder, bench)


add_file = lie(ran, _add_file)
other_id = _told(ran, id="another")
other_run = _told(ran, run="another")
forget_worker = _told(lambda data: data["topology"] == "two-worker" and data["requests"], workers=[])
forget_probe = _told(exact, exact=None)
forget_gateway = _told(lambda data: data["surface"] == "rr" and ran(data), gateway=None)
forget_idle = lie(_partial, _attempt(_forget_idle))
leave_out_offer = lie(ran, _sample(lambda desk, row: row.update(offer="attempt-099")))
tell_as_main = lie(ran, _sample(lambda desk, row: row.update(phase="main")))
remove_answer = lie(ran, _remove_body)
alter_answer = lie(ran, _alter_body)
uncited_body = lie(ran, _spare_body)
longer_answer = lie(ran, _sample(_longer))
cap_quietly = lie(_succeeded, _sample(_cap))
break_quietly = lie(_succeeded, _sample(_break))
other_finish = lie(ran, _sample(lambda desk, row: row.update(finishReason="eos")))
more_tokens = lie(ran, _sample(lambda desk, row: row.update(completionTokens=999)))
text_after_end = lie(ran, _sample(lambda desk, row: row.update(ttftSeconds=row["totalSeconds"] + 1)))
number_from_two = lie(ran, _ledger(_shift))
hide_traffic = lie(ran, _ledger(_hide))
cut_exchange = lie(ran, _ledger(lambda rows: rows[0].update(complete=False)))
other_length = lie(ran, _ledger(lambda rows: rows[0]["requestHeaders"].update({"content-length": "7"})))
alter_receipt = lie(ran, _ledger(_alter_hash))
drop_receipt = lie(ran, _ledger(_drop))
other_request_id = lie(ran, _ledger(_rename))
count_more = _told(ran, requests=999)
count_capped_normal = lie(
    lambda data: data["counts"].get("CAPPED"), _attempt(lambda data: data.update(counts={"NORMAL": data["requests"]}))
)
succeed_in_setup = _told(_blocked, outcome="SUCCESS", reason="OK", message=None)
fail_a_success = _told(_succeeded, outcome="NATIVE_FAILURE", reason="BAD_ANSWER")
defer_blocked = _told(_blocked, outcome="USER_DEFERRED")
decide_unended = _told(lambda data: data["outcome"] == "NATIVE_FAILURE", ended=False, endedAt=None)
promote_partial = lie(_partial, _promote_partial)
fail_in_setup = _told(ran, outcome="MISSING_IMAGE", reason="PROGRAM_NOT_FOUND")
end_before_begin = _told(ran, endedAt="2000-01-01T00:00:00.000000Z")
succeed_without_end = _told(_succeeded, ended=False, endedAt=None)
other_token_ids = lie(exact, _attempt(lambda data: data["exact"].update(observedTokenIds=[9, 9], tokenIdsEqual=True)))
admit_partial = lie(_partial, _attempt(lambda data: data["exact"].update(engagement="ADMITTED")))
invent_traffic = lie(
    exact, _attempt(lambda data: data["exact"].update(trafficPerWorker={"worker-1": 9, "worker-2": 9}))
)
accept_failure = lie(lambda data: data["outcome"] != "SUCCESS", _accept)
accept_other_surface = lie(_succeeded, _attempt(lambda data: data["scope"].update(accepted=True, modes=["native-pd"])))
lose_half = lie(lambda data: _succeeded(data) and data["surface"] == "rr", _lose_half)
withhold_silently = lie(ran, _control(lambda one: one.update(kept=False, withheldReason=None), lambda one: one["kept"]))
keep_and_withhold = lie(ran, _control(lambda one: one.update(withheldReason="a reason"), lambda one: one["kept"]))
turn_synthetic = lie(ran, _attempt(lambda data: data.update(synthetic=not data["synthetic"])))

"""Lies about what the documents of one attempt say of one another."""

from __future__ import annotations

from decimal import Decimal
from functools import partial
from typing import Any, Callable, Dict, List, Optional

from checking.damage import Bench
from checking.reading import shown
from checking.rules import clocks_lies
from checking.rules.attempts_lies import exact, lie, ran
from checking.rules.converged import INDEX, PARENT
from checking.rules.forgery import Desk
from checking.rules.instants import begun

Row = Dict[str, Any]


def _two(data: Row) -> Any:
    return ran(data) and len(data["launches"]) > 1


def _stamped(data: Row) -> Any:
    return begun(data["run"])


def _launch(change: Callable[[List[Row]], Any]) -> Callable[[Desk], str]:
    def tell(desk: Desk) -> str:
        with desk.edit("attempt.json") as data:
            change(data["launches"])
        return "launches"

    return tell


def _times(desk: Desk, **values: Any) -> str:
    with desk.edit("attempt.json") as data:
        data.update(values)
    with desk.bench.edit(INDEX) as index:
        for row in index["attempts"]:
            if row["folder"] == desk.folder:
                row.update(values)
    return shown(values)


def _began_earlier(desk: Desk) -> str:
    told = desk.load("attempt.json")["startedAt"]
    return _times(desk, startedAt="2020" + told[4:])


def _ended_at_once(desk: Desk) -> str:
    return _times(desk, endedAt=desk.load("attempt.json")["startedAt"])


def _drop_control(desk: Desk) -> Optional[str]:
    with desk.edit("controls.json") as data:
        workers = {one["worker"] for one in data["controls"]}
        if len(workers) < 2:
            return None
        last = data["controls"].pop()
    return str(last["id"]) + " dropped"


def _other_status(desk: Desk) -> Optional[str]:
    seen = {
        (row["path"], row["responseSha256"])
        for name in desk.ledger_names()
        for row in desk.load(name)["receipts"]
        if not row["traffic"]
    }
    with desk.edit("controls.json") as data:
        one = next((one for one in data["controls"] if (one["path"], one["sha256"]) in seen), None)
        if one is None:
            return None
        one["status"] = 500
    return str(one["id"])


def _control_hash(desk: Desk) -> Optional[str]:
    for name in desk.ledger_names():
        with desk.edit(name) as ledger:
            for row in ledger["receipts"]:
                if not row["traffic"]:
                    row["responseSha256"] = "0" * 64
                    return name
    return None


def _expect(desk: Desk) -> str:
    with desk.edit("attempt.json") as data:
        data["exact"]["expectedTokenIds"] = [*data["exact"]["expectedTokenIds"], 7]
        if data["exact"]["tokenIdsEqual"]:
            data["exact"]["observedTokenIds"] = None
            data["exact"]["tokenIdsEqual"] = data["exact"]["control"] = None
    return "another expectation"


def _halve(desk: Desk) -> str:
    with desk.samples() as rows:
        for row in rows:
            row["totalSeconds"] = round(Decimal(row["totalSeconds"]) / 1000, 9).normalize()
            if row["ttftSeconds"] is not None:
                row["ttftSeconds"] = row["totalSeconds"]
            row["reasoningSeconds"] = None
    return "every answer told a thousand times faster"


def _receive_later(desk: Desk) -> Optional[str]:
    answered = {row["offer"] for row in desk.load("samples.json")["samples"] if row["transport"] == "complete"}
    for name in desk.ledger_names():
        with desk.edit(name) as ledger:
            seen = [row for row in ledger["receipts"] if row["complete"] and row["requestId"] in answered]
            if len(seen) > 1:
                for key in ("startedSeconds", "endedSeconds"):
                    seen[-1][key] += 100
                return "%s#%d" % (name, seen[-1]["sequence"])
    return None


def _each(tell: Callable[[Desk], Optional[str]]) -> Callable[[Bench], Optional[str]]:
    """A forgery of the first attempt that has something of its kind."""

    def damage(bench: Bench) -> Optional[str]:
        for folder in bench.folders(PARENT):
            told = tell(Desk(bench, folder))
            if told is not None:
                return "%s: %s" % (folder, told)
        return None

    return damage


def _twice(launches: List[Row]) -> None:
    launches[1]["worker"] = launches[0]["worker"]


forget_launch = lie(_two, _launch(lambda launches: launches.pop()))
launch_one_twice = lie(_two, _launch(_twice))
launch_one_otherwise = lie(_two, _launch(lambda launches: launches[1]["arguments"].append("--another")))
begin_earlier = lie(_stamped, _began_earlier)
end_at_once = lie(ran, _ended_at_once)
drop_control = lie(_two, _drop_control)
other_status = lie(ran, _other_status)
other_control_hash = lie(ran, _control_hash)
expect_others = lie(exact, _expect)
tell_faster = lie(ran, _halve)
receive_later = _each(_receive_later)
answer_again = _each(partial(clocks_lies.answer_again, "attempt.json"))
work_longer = _each(clocks_lies.work_longer)
date_back = _each(partial(clocks_lies.date_back, "attempt.json"))
build_anew = _each(clocks_lies.build_anew)

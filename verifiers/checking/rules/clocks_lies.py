"""Lies about times that the slots of the client, or the engine's own clock in the bodies, give away."""

from __future__ import annotations

import re
from datetime import timedelta
from decimal import Decimal
from typing import Any, Callable, List, Optional

from checking.plan import CONCURRENCY
from checking.rules.agreement import FREE_ADAPTER, READ
from checking.rules.comparison import Row, arm_id
from checking.rules.forgery import Desk, main_rows
from checking.rules.instants import instant

_CREATED = re.compile(rb'("created": ?)([1-9][0-9]{0,14})(?=[,}])')
_BUILD = re.compile(rb'"system_fingerprint": ?"[^"]*"')
_END = b"data: [DONE]"
DAY = 86400


def _free(desk: Desk, document: str) -> bool:
    engine = desk.load(document)["engine"]
    engines = desk.bench.load("manifest.json")["engines"]
    return any(one["adapter"] == FREE_ADAPTER for one in engines if one["id"] == engine)


def _read(rows: List[Row]) -> List[Row]:
    """What was answered whole."""
    return [row for row in rows if row["classification"] in READ and row["transport"] == "complete"]


def shorten_slowest(desk: Desk) -> Optional[str]:
    """Halve the slowest of a candidate arm's first main exchanges, its receipt and its first text with it."""
    with desk.samples() as rows:
        mine = sorted(main_rows(rows, "r1-b"), key=lambda row: row["startedSeconds"])
        row = max(mine[:CONCURRENCY], key=lambda one: one["totalSeconds"])
        gone = round(Decimal(row["totalSeconds"]) / 2, 9)
        row["totalSeconds"] -= gone
        for name in ("ttftSeconds", "reasoningSeconds"):
            if row[name] is not None:
                row[name] = min(row[name], row["totalSeconds"])
        with desk.receipt(row["offer"]) as receipt:
            if receipt is not None:
                receipt["endedSeconds"] = max(receipt["startedSeconds"], receipt["endedSeconds"] - gone)
    return "%s shorter by %s s" % (row["offer"], gone)


def load_less(desk: Desk) -> str:
    """Offer half of a candidate arm's main requests when the first half has ended, and tell no lag of it."""
    with desk.samples() as rows:
        mine = sorted(main_rows(rows, "r3-b"), key=lambda row: row["startedSeconds"])
        late = mine[CONCURRENCY // 2 : CONCURRENCY]
        for row in late:
            row["startedSeconds"] += Decimal("0.05")
            with desk.receipt(row["offer"]) as receipt:
                if receipt is not None:
                    receipt["startedSeconds"] += Decimal("0.05")
                    receipt["endedSeconds"] += Decimal("0.05")
    return "%s and those behind it began 0.05 s later" % late[0]["offer"]


def _reword(desk: Desk, row: Row, change: Callable[[bytes], bytes]) -> bool:
    """Alter the stored answer of a sample, in its receipt too; whether anything was altered."""
    old = desk.body(row)
    new = change(old)
    if new != old:
        desk.answer_with(row, new)
    return new != old


def _works(prompt: Any, text: Any) -> Callable[[bytes], bytes]:
    event = 'data: {"choices":[],"timings":{"prompt_ms":%s,"predicted_ms":%s}}\n\n' % (prompt, text)
    return lambda data: data.replace(_END, event.encode() + _END)


def work_longer(desk: Desk) -> Optional[str]:
    """Let the engine say that it worked at an answer for a second longer than the client waited."""
    with desk.samples() as rows:
        for row in _read(rows):
            if _reword(desk, row, _works(0, (Decimal(row["totalSeconds"]) + 1) * 1000)):
                return str(row["offer"]) + " took longer by its body"
    return None


def read_longer(desk: Desk) -> Optional[str]:
    """Let the engine say that it read a prompt until ten milliseconds after the first text had come."""
    with desk.samples() as rows:
        for row in _read(rows):
            if row["ttftSeconds"] is None or row["totalSeconds"] - row["ttftSeconds"] < Decimal("0.012"):
                continue
            if _reword(desk, row, _works((Decimal(row["ttftSeconds"]) + Decimal("0.01")) * 1000, 0)):
                return str(row["offer"]) + " had its text before its prompt was read"
    return None


def hasten_first_texts(desk: Desk) -> Optional[str]:
    """Let every first text come at once, and the engines say that they wrote for no longer than before."""
    with desk.samples() as rows:
        mine = [row for row in _read(main_rows(rows, "r2-b")) if row["ttftSeconds"] is not None]
        if not mine or any(row["totalSeconds"] < Decimal("0.15") for row in mine):
            return None
        for row in mine:
            wrote = max(0, (row["totalSeconds"] - Decimal("0.14")) * 1000)
            if not _reword(desk, row, _works(0, wrote)):
                return None
            row["ttftSeconds"] = Decimal("0.000001")
    return "first texts of r2-b-main at once"


def write_a_word(desk: Desk) -> Optional[str]:
    """Let an answer take a second from its first text to its end of which the engine knows nothing."""
    with desk.samples() as rows:
        mine = [row for row in _read(rows) if row["ttftSeconds"] is not None]
        for row in mine:
            if _reword(desk, row, _works(0, 0)):
                row["totalSeconds"] += 1
                return str(row["offer"]) + " longer by a second than it was written"
    return None


def _back(data: bytes) -> bytes:
    return _CREATED.sub(lambda one: one[1] + str(max(1, int(one[2]) - DAY)).encode(), data)


def date_back(document: str, desk: Desk) -> Optional[str]:
    """Let the engine say that it made one answer the day before."""
    with desk.samples() as rows:
        mine = _read(rows)
        for row in mine if len(mine) > 1 and not _free(desk, document) else ():
            if row["worker"] is not None and _reword(desk, row, _back):
                return str(row["offer"]) + " made the day before"
    return None


def move_arms(desk: Desk) -> Optional[str]:
    """Let a whole comparison have run thirty days later than its answers say."""
    if _free(desk, "comparison.json"):
        return None
    with desk.samples() as rows:
        if len({one for row in _read(rows) for one in _CREATED.findall(desk.body(row))}) < 2:
            return None
    with desk.edit("comparison.json") as data:
        for arm in data["arms"]:
            moved = instant(arm["startedAt"]) + timedelta(days=30)
            arm["startedAt"] = moved.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    return "arms begun 30 days later"


def build_anew(desk: Desk) -> Optional[str]:
    """Let two answers name two builds of the engine."""
    done: List[str] = []
    with desk.samples() as rows:
        mine = _read(rows)
        for row in mine:
            if (row["worker"], arm_id(row)) != (mine[0]["worker"], arm_id(mine[0])):
                continue
            told = ('"system_fingerprint":"build-%d"' % len(done)).encode()

            def name(data: bytes, told: bytes = told) -> bytes:
                if _BUILD.search(data):
                    return _BUILD.sub(told, data)
                return data.replace(b'"choices"', told + b',"choices"')

            if _reword(desk, row, name):
                done.append(row["offer"])
            if len(done) == 2:
                return "%s and %s of two builds" % tuple(done)
    return None


def answer_again(document: str, desk: Desk) -> Optional[str]:
    """Give a sample the stored answer of another."""
    with desk.samples() as rows:
        mine = [row for row in _read(rows) if b'"id"' in desk.body(row)]
        if len(mine) < 2 or _free(desk, document):
            return None
        good, bad = mine[:2]
        desk.answer_with(bad, desk.body(good))
        for key in ("classification", "finishReason", "promptTokens", "completionTokens"):
            bad[key] = good[key]
    return "%s with the answer of %s" % (bad["offer"], good["offer"])

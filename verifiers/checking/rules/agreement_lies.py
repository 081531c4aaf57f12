"""Lies in which two sides of a comparison no longer say the same, each coherent but for that."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any, Optional

from checking.damage import Bench
from checking.rules.agreement import FREE_ADAPTER, READ
from checking.rules.forgery import SETTINGS, Desk, Row, main_rows, pick


def _greatest(desk: Desk, arm: str) -> Row:
    rows: Row = max(main_rows(desk.load("samples.json")["samples"], arm), key=lambda row: row["sendLagSeconds"])
    return rows


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


def hide_send_lag(desk: Desk) -> str:
    """Let one main request leave a second late, tell that lag, and still call the client in time."""
    with desk.edit("comparison.json") as data:
        client = data["arms"][1]["client"]
        late = client["limitSeconds"] + 1
        client.update(late=False, sendLagMaxSeconds=late, sendLagP99Seconds=late)
    with desk.samples() as rows:
        for row in main_rows(rows, "r1-b"):
            row["sendLagSeconds"] = min(row["sendLagSeconds"], late)
        pick(rows, "r1-b", 2)["sendLagSeconds"] = late
    return "r1-b-main-003 left %s s late" % late


def allow_more(desk: Desk) -> str:
    """Double the limit of one arm's client."""
    with desk.edit("comparison.json") as data:
        data["arms"][3]["client"]["limitSeconds"] *= 2
    return "a limit of %s s for one arm" % data["arms"][3]["client"]["limitSeconds"]


def shrink_send_lag(desk: Desk) -> Optional[str]:
    """Tell half the greatest send lag of an arm."""
    if not _greatest(desk, "r1-a")["sendLagSeconds"] > Decimal("0.000000002"):
        return None
    half = (Decimal(_greatest(desk, "r1-a")["sendLagSeconds"]) / 2).quantize(Decimal("0.000000001"))
    with desk.edit("comparison.json") as data:
        data["arms"][0]["client"].update(sendLagMaxSeconds=half, sendLagP99Seconds=half)
    return "greatest send lag of r1-a halved"


def lag_quietly(desk: Desk) -> str:
    """Let one main request leave fifty seconds late and tell no more lag than before."""
    with desk.samples() as rows:
        pick(rows, "r2-a", 5)["sendLagSeconds"] += 50
    return "r2-a-main-006 left 50 s later"


def _free(desk: Desk) -> bool:
    """Whether the comparison's engine is described by a command alone."""
    engine = desk.load("comparison.json")["engine"]
    return any(
        one["adapter"] == FREE_ADAPTER for one in desk.bench.load("manifest.json")["engines"] if one["id"] == engine
    )


def ask_another_model(desk: Desk) -> Optional[str]:
    """Ask another model in the main body, in samples and receipts alike."""
    with desk.edit("comparison.json") as data:
        old = data["requests"]["main"]["sha256"]
        if b'"model"' not in desk.bench.read(desk.path("bodies/" + data["requests"]["native"]["sha256"])):
            return None
        asked = json.loads(desk.bench.read(desk.path("bodies/" + old)).decode())
        if "model" not in asked:
            return None
        text = json.dumps(dict(asked, model="another-model")).encode()
        new = desk.bench.body(desk.folder, text)
        data["requests"]["main"].update(sha256=new, bytes=len(text))
    desk.bench.remove(desk.path("bodies/" + old))

    def ask(row: Row) -> None:
        if row["requestSha256"] == old:
            row.update(requestSha256=new, requestBytes=len(text))
            if "content-length" in row.get("requestHeaders", {}):
                row["requestHeaders"]["content-length"] = str(len(text))

    with desk.samples() as rows:
        for row in rows:
            ask(row)
    for name in desk.ledger_names():
        with desk.edit(name) as ledger:
            for row in ledger["receipts"]:
                ask(row)
    return "main requests ask another-model"


def answer_as_another(desk: Desk) -> Optional[str]:
    """Let one main answer name another model."""
    with desk.samples() as rows:
        row = pick(rows, "r2-b", 4)
        if row["classification"] not in READ:
            return None
        data = desk.body(row)
        for piece in (b'"model":"', b'"model": "'):
            if piece in data:
                desk.answer_with(row, data.replace(piece, piece + b"another-"))
                return str(row["offer"]) + " answered by another model"
    return None


def answer_twice(desk: Desk) -> Optional[str]:
    """Give a main sample the stored answer of another, in its receipt too."""
    with desk.samples() as rows:
        good, bad = pick(rows, "r1-a", 3), pick(rows, "r2-b", 9)
        if _free(desk) or good["classification"] not in READ or b'"id"' not in desk.body(good):
            return None
        old = bad["responseSha256"]
        desk.answer_with(bad, desk.body(good))
        for key in ("classification", "finishReason", "promptTokens", "completionTokens"):
            bad[key] = good[key]
    return None if old == bad["responseSha256"] else "%s with the answer of %s" % (bad["offer"], good["offer"])


def _last_seen(desk: Desk, change: Any) -> Optional[str]:
    """Change the last receipt of a ledger that carries the id of an answered sample."""
    answered = {row["offer"] for row in desk.load("samples.json")["samples"] if row["classification"] in READ}
    name = desk.ledger_names("r1-b")[0]
    with desk.edit(name) as ledger:
        seen = [row for row in ledger["receipts"] if row["complete"] and row["requestId"] in answered]
        if not seen:
            return None
        change(seen[-1])
    return "%s#%d" % (name, seen[-1]["sequence"])


def receive_elsewhere(desk: Desk) -> Optional[str]:
    """Let a chat request have gone to the embeddings path."""
    return _last_seen(desk, lambda row: row.update(path="/v1/embeddings"))


def answer_html(desk: Desk) -> Optional[str]:
    """Let a stream have come as a page."""
    if _free(desk):
        return None
    return _last_seen(desk, lambda row: row["responseHeaders"].update({"content-type": "text/html"}))


def other_status(desk: Desk) -> Optional[str]:
    """Let the recorder have seen another good status than the client."""
    return _last_seen(desk, lambda row: row.update(status=201))


def _shift(rows: Any, by: int) -> None:
    for row in rows:
        row["startedSeconds"] += by
        row["endedSeconds"] += by


def shift_main_receipts(desk: Desk) -> Optional[str]:
    """Move the receipts of a main batch ten seconds on, away from their samples."""
    name = desk.ledger_names("r1-a")[0]
    with desk.edit(name) as ledger:
        rows = ledger["receipts"]
        if len(rows) < 10 or rows[-1]["requestId"] is None or not rows[-1]["complete"]:
            return None
        _shift(rows[9:], 10)
    return name + " ten seconds later from receipt 10 on"


def exchange_receipt_times(desk: Desk) -> Optional[str]:
    """Exchange the times of a warm-up's receipt and of a main one."""
    name = desk.ledger_names("r3-b")[0]
    with desk.edit(name) as ledger:
        one, two = ledger["receipts"][2], ledger["receipts"][-1]
        if two["startedSeconds"] - one["startedSeconds"] < 1:
            return None
        for key in ("startedSeconds", "endedSeconds"):
            one[key], two[key] = two[key], one[key]
    return name + " times of receipt 3 and the last exchanged"


def count_more_tokens(desk: Desk) -> str:
    """Tell a control of the date whose readings of one hash count differently."""
    with desk.edit("comparison.json") as data:
        readings = [
            {"repetition": arm["repetition"], "arm": arm["arm"], "worker": one["alias"], "tokenIdsSha256": "0" * 64}
            for arm in data["arms"]
            for one in data["workers"]
        ]
        for place, one in enumerate(readings):
            one["tokens"] = 99 if place == 5 else 13
        data["dateControl"] = {"timeZone": "UTC", "comparisonDate": "2026-01-01", "nativeTokenIds": readings}
    return "13 tokens and 99 of one hash"


def forget_date_control(bench: Bench) -> Optional[str]:
    """Leave a comparison of a date-sensitive profile without its date control, and as qualified as it was."""
    for folder in bench.folders(SETTINGS):
        desk = Desk(bench, folder)
        codes = [one["code"] for one in desk.load("decision.json")["disqualifications"]]
        profile = desk.load("comparison.json")["profile"]
        model = "models/%s.json" % profile
        if "DATE_INPUT_DIFFERS" in codes or not bench.has(model):
            continue
        with desk.edit("comparison.json") as data:
            data["dateControl"] = None
        with bench.edit(model) as told:
            told["profile"]["dateSensitive"] = True
        with bench.edit("model-identities.json") as told:
            for one in told["profiles"]:
                if one["id"] == profile:
                    one["dateSensitive"] = True
        return "%s without a date control of the date-sensitive %s" % (folder, profile)
    return None

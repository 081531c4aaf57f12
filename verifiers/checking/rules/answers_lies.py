"""Lies about the answers that samples got and the bodies that hold them, each coherent but for its meaning."""

from __future__ import annotations

from typing import Any, Optional

from checking.rules.forgery import Desk, main_rows, pick


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

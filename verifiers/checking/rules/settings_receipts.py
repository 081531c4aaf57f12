"""What must hold of the receipts of a complete setting comparison."""

from __future__ import annotations

from checking.later import Later
from checking.rules import agreement, receipts
from checking.rules.row import lie, row

agreement_lies = Later("checking.rules.agreement_lies")
receipts_lies = Later("checking.rules.receipts_lies")
samples_lies = Later("checking.rules.samples_lies")

CHECKS = (
    row(
        "receipt-sequence",
        "the receipts of a ledger are numbered without a gap",
        receipts.hold_sequence,
        lie("leave a number out", receipts_lies.renumber),
    ),
    row(
        "receipt-traffic",
        "traffic is a POST to a serving path, and nothing else",
        receipts.hold_traffic,
        lie("call traffic a control", receipts_lies.hide_traffic),
    ),
    row(
        "receipt-complete",
        "a complete exchange has a status and no reason",
        receipts.hold_completeness,
        lie("keep an incomplete exchange without its reason", receipts_lies.cut_receipt),
        lie("call a cut exchange complete", receipts_lies.complete_with_reason),
    ),
    row(
        "receipt-headers",
        "recorded headers agree with the receipt",
        receipts.hold_headers,
        lie("record another content length", receipts_lies.lose_header),
        lie("record another request id header", receipts_lies.other_request_header),
    ),
    row(
        "receipt-clock",
        "an exchange ends after it began",
        receipts.hold_clock,
        lie("end an exchange before it began", receipts_lies.end_first),
    ),
    row(
        "receipt-fits",
        "path, status and content type of a receipt fit its exchange",
        agreement.hold_fitting,
        lie("let a chat request have gone to the embeddings path", agreement_lies.receive_elsewhere),
        lie("let a stream have come as a page", agreement_lies.answer_html),
        lie("let the recorder have seen another good status", agreement_lies.other_status),
    ),
    row(
        "receipt-offset",
        "one offset lays every receipt of a ledger inside its sample",
        agreement.hold_clocks,
        lie("move the receipts of a main batch ten seconds on", agreement_lies.shift_main_receipts),
        lie("exchange the times of two receipts", agreement_lies.exchange_receipt_times),
    ),
    row(
        "receipt-copy",
        "no receipt is a copy of another",
        receipts.hold_copies,
        lie("append a copy of a receipt", receipts_lies.repeat_receipt),
        lie("give two receipts the same times", receipts_lies.copy_receipt_times),
    ),
    row(
        "receipt-unmatched",
        "every traffic receipt belongs to one sample",
        receipts.hold_matched,
        lie("alter the hash of a receipt", receipts_lies.alter_receipt_hash),
    ),
    row(
        "sample-unreceipted",
        "every whole sample has one receipt with its hashes, on its worker",
        receipts.hold_receipted,
        lie("drop a receipt", receipts_lies.drop_receipt),
        lie("empty a ledger", receipts_lies.empty_ledger),
        lie("move a receipt to the other worker", receipts_lies.move_receipt),
    ),
    row(
        "request-id",
        "a recorded request id is that of the sample with the same hashes and worker",
        receipts.hold_ids,
        lie("exchange two request ids", receipts_lies.swap_ids),
        lie("tell a sample as the other worker's", receipts_lies.move_worker),
        lie("let the recorder see a cut exchange as the client sees a whole one", receipts_lies.call_partial_complete),
    ),
    row(
        "round-robin",
        "both workers served equal counts",
        receipts.hold_balance,
        lie("let one worker serve two requests of the other", receipts_lies.unbalance),
    ),
    row(
        "witness-time",
        "the client took no less time than the recorder before the worker",
        receipts.hold_witness,
        lie("halve the client's times of an arm", receipts_lies.halve_client_times, decide=True),
        lie("halve the candidate's times in every repetition", samples_lies.shave_times, decide=True),
    ),
)

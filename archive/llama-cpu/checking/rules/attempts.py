"""The table of everything that must hold of functional attempts and their index, with the lies that prove it."""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Optional

from checking.check import Check, Family, Mutation
from checking.damage import Bench
from checking.rules import converged, index, receipts, samples
from checking.rules.forgery import Desk

Row = Dict[str, Any]
INDEX = converged.INDEX


def _desks(bench: Bench, wanted: Callable[[Row], Any]) -> Optional[Desk]:
    for folder in bench.folders(converged.PARENT):
        desk = Desk(bench, folder)
        if bench.has(desk.path("attempt.json")) and wanted(desk.load("attempt.json")):
            return desk
    return None


def _index(desk: Desk, **values: Any) -> None:
    with desk.bench.edit(INDEX) as index:
        for row in index["attempts"]:
            if row["folder"] == desk.folder:
                row.update(values)


def lie(name: str, wanted: Callable[[Row], Any], tell: Callable[[Desk], Optional[str]]) -> Mutation:
    """A coherent forgery of the first attempt that is wanted."""

    def damage(bench: Bench) -> Optional[str]:
        desk = _desks(bench, wanted)
        if desk is None:
            return None
        told = tell(desk)
        return None if told is None else "%s: %s" % (desk.folder, told)

    return Mutation(name, damage)


def told(name: str, wanted: Callable[[Row], Any], index: bool = True, **values: Any) -> Mutation:
    """A forgery that sets values of attempt.json, and of its index row where those are there too."""

    def tell(desk: Desk) -> str:
        with desk.edit("attempt.json") as data:
            data.update(values)
        if index:
            row_keys = ("outcome", "reason", "startedAt", "endedAt", "ended", "synthetic", "surface", "engine")
            _index(desk, **{key: value for key, value in values.items() if key in row_keys})
        return ", ".join("%s %s" % item for item in sorted(values.items()))

    return lie(name, wanted, tell)


def ran(data: Row) -> Any:
    """Wanted: an attempt with samples."""
    return data["requests"]


def succeeded(data: Row) -> Any:
    """Wanted: a success."""
    return data["outcome"] == "SUCCESS"


def blocked(data: Row) -> Any:
    """Wanted: an attempt that failed in set-up."""
    return data["outcome"] in converged.SETUP


def exact(data: Row) -> Any:
    """Wanted: an attempt on surface exact that ran."""
    return data["exact"] is not None and data["requests"]


def partial(data: Row) -> Any:
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


def _own_hash(desk: Desk, row: Row) -> None:
    row["responseBytes"] += 1


def _promote_partial(desk: Desk) -> str:
    with desk.edit("attempt.json") as data:
        data.update(outcome="SUCCESS", reason="OK", message=None)
        data["scope"].update(accepted=True, modes=["exact"])
    _index(desk, outcome="SUCCESS", reason="OK", accepted=True)
    return "one-prefill engagement told a success"


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


def _stray(bench: Bench) -> Optional[str]:
    if not bench.folders(converged.PARENT):
        return None
    bench.put(converged.PARENT + "/summary.txt", b"all good\n")
    return converged.PARENT + "/summary.txt"


def _index_lie(name: str, change: Callable[[List[Row]], Any]) -> Mutation:
    def damage(bench: Bench) -> Optional[str]:
        value = bench.load(INDEX)
        if not value["attempts"]:
            return None
        change(value["attempts"])
        bench.store(INDEX, value)
        bench.reseal_sums()
        return INDEX

    return Mutation(name, damage, resealed=False)


def _copy(bench: Bench) -> Optional[str]:
    """Package an attempt twice under another run."""
    desk = _desks(bench, lambda data: data["requests"] > 1)
    if desk is None:
        return None
    twin, own = desk.folder + "-again", desk.folder.rsplit("/", 1)[1] + "-again"
    for name in bench.below(desk.folder):
        bench.put(twin + name[len(desk.folder) :], bench.read(name))
    for name, key in (("attempt.json", "id"), ("samples.json", "comparison"), ("controls.json", "attempt")):
        with bench.edit("%s/%s" % (twin, name)) as data:
            data[key] = own
            if name == "attempt.json":
                data["run"] = own
    with bench.edit(INDEX) as data:
        row = next(row for row in data["attempts"] if row["folder"] == desk.folder)
        data["attempts"].append(dict(row, id=own, folder=twin, files=dict(row["files"])))
        data["attempts"].sort(key=lambda row: str(row["id"]))
    return own


C = converged
CHECKS = (
    Check(
        "attempt-files",
        "an attempt's folder holds its documents, ledgers and bodies",
        C.hold_files,
        (lie("leave a further file in an attempt", ran, _add_file),),
    ),
    Check(
        "attempt-names",
        "every document names its attempt",
        C.hold_names,
        (told("give an attempt another id", ran, id="another"),),
    ),
    Check(
        "attempt-shape",
        "topology, surface, workers and launches fit one another",
        C.hold_shape,
        (
            told(
                "forget a worker of two", lambda data: data["topology"] == "two-worker" and data["requests"], workers=[]
            ),
            told("tell exact traffic without its probe", exact, exact=None),
        ),
    ),
    Check(
        "attempt-offers",
        "the samples of an attempt are numbered without a gap",
        C.hold_offers,
        (
            lie("leave out the first offer", ran, _sample(lambda desk, row: row.update(offer="attempt-099"))),
            lie("tell a functional request as a main one", ran, _sample(lambda desk, row: row.update(phase="main"))),
        ),
    ),
    Check(
        "attempt-stored",
        "every hash that an attempt cites is a stored body",
        C.hold_stored,
        (lie("remove a functional answer", ran, _remove_body),),
    ),
    Check(
        "attempt-digest",
        "the name of a functional body is its SHA-256",
        samples.hold_digests,
        (lie("alter a functional answer under its old name", ran, _alter_body),),
    ),
    Check(
        "attempt-cited",
        "no functional body lies there that nothing cites",
        C.hold_cited,
        (lie("add a functional body that nothing cites", ran, _spare_body),),
    ),
    Check(
        "attempt-length",
        "every told length of an attempt is that of the stored body",
        samples.hold_lengths,
        (lie("tell a functional answer a byte longer", ran, _sample(_own_hash)),),
    ),
    Check(
        "attempt-class",
        "a functional classification follows from the stored bytes",
        samples.hold_classification,
        (
            lie("call a capped functional answer normal", succeeded, _sample(_cap)),
            lie("call a broken functional answer normal", succeeded, _sample(_break)),
        ),
    ),
    Check(
        "attempt-finish",
        "a functional finish reason is that of the stored body",
        samples.hold_finish,
        (lie("tell another functional finish reason", ran, _sample(lambda desk, row: row.update(finishReason="eos"))),),
    ),
    Check(
        "attempt-tokens",
        "functional token counts are those of the stored body",
        samples.hold_tokens,
        (
            lie(
                "tell more functional tokens than the body",
                ran,
                _sample(lambda desk, row: row.update(completionTokens=999)),
            ),
        ),
    ),
    Check(
        "attempt-times",
        "functional times are in order",
        samples.hold_times,
        (
            lie(
                "let functional text come after its end",
                ran,
                _sample(lambda desk, row: row.update(ttftSeconds=row["totalSeconds"] + 1)),
            ),
        ),
    ),
    Check(
        "attempt-sequence",
        "the receipts of an attempt are numbered without a gap",
        receipts.hold_sequence,
        (lie("number an attempt's receipts from two", ran, _ledger(_shift)),),
    ),
    Check(
        "attempt-traffic",
        "an attempt's traffic is a POST to a serving path, and nothing else",
        receipts.hold_traffic,
        (lie("call functional traffic a control", ran, _ledger(_hide)),),
    ),
    Check(
        "attempt-complete",
        "a complete functional exchange has a status and no reason",
        receipts.hold_completeness,
        (lie("cut a functional exchange without a reason", ran, _ledger(lambda rows: rows[0].update(complete=False))),),
    ),
    Check(
        "attempt-headers",
        "recorded headers of an attempt agree with the receipt",
        receipts.hold_headers,
        (
            lie(
                "record another functional content length",
                ran,
                _ledger(lambda rows: rows[0]["requestHeaders"].update({"content-length": "7"})),
            ),
        ),
    ),
    Check(
        "attempt-unmatched",
        "every functional receipt belongs to one sample",
        receipts.hold_matched,
        (lie("alter the hash of a functional receipt", ran, _ledger(_alter_hash)),),
    ),
    Check(
        "attempt-unreceipted",
        "every whole functional sample has one receipt",
        receipts.hold_receipted,
        (lie("drop a functional receipt", ran, _ledger(_drop)),),
    ),
    Check(
        "attempt-request-id",
        "a functional request id is that of the sample with the same hashes",
        receipts.hold_ids,
        (
            lie(
                "give a functional receipt another id",
                ran,
                _ledger(_rename),
            ),
        ),
    ),
    Check(
        "attempt-counts",
        "requests and classes are counted as the bodies classify",
        C.hold_counts,
        (
            told("count a request more", ran, requests=999),
            lie(
                "count a capped answer as normal",
                lambda data: data["counts"].get("CAPPED"),
                _attempt(lambda data: data.update(counts={"NORMAL": data["requests"]})),
            ),
        ),
    ),
    Check(
        "attempt-outcome",
        "the outcome follows from bodies, receipts and token ids",
        C.hold_outcome,
        (
            told("turn a set-up failure into a success", blocked, outcome="SUCCESS", reason="OK", message=None),
            told("turn a success into a failure", succeeded, outcome="NATIVE_FAILURE", reason="BAD_ANSWER"),
            told("tell a blocked attempt as deferred", blocked, outcome="USER_DEFERRED"),
            lie("turn one-prefill engagement into a success", partial, _promote_partial),
        ),
    ),
    Check(
        "attempt-setup",
        "a set-up failure has no traffic, and only what ended is a success",
        C.hold_setup,
        (
            told("tell traffic as a set-up failure", ran, outcome="MISSING_IMAGE", reason="PROGRAM_NOT_FOUND"),
            told("end an attempt before it began", ran, endedAt="2000-01-01T00:00:00.000000Z"),
            told("tell a success that did not end", succeeded, ended=False, endedAt=None),
        ),
    ),
    Check(
        "attempt-exact",
        "exact engagement is what token ids and ledgers say",
        C.hold_exact,
        (
            lie(
                "tell other token ids as equal",
                exact,
                _attempt(lambda data: data["exact"].update(observedTokenIds=[9, 9], tokenIdsEqual=True)),
            ),
            lie(
                "tell one prefill as full engagement",
                partial,
                _attempt(lambda data: data["exact"].update(engagement="ADMITTED")),
            ),
            lie(
                "invent traffic of an idle worker",
                exact,
                _attempt(lambda data: data["exact"].update(trafficPerWorker={"worker-1": 9, "worker-2": 9})),
            ),
        ),
    ),
    Check(
        "attempt-scope",
        "only a success may be cited, for its own surface",
        C.hold_scope,
        (
            lie("accept an attempt that failed", lambda data: data["outcome"] != "SUCCESS", _accept),
            lie(
                "accept an attempt for another surface",
                succeeded,
                _attempt(lambda data: data["scope"].update(accepted=True, modes=["native-pd"])),
            ),
        ),
    ),
    Check(
        "attempt-round-robin",
        "a round-robin success reached its workers equally often",
        C.hold_balance,
        (
            lie(
                "drop one worker's half of a round-robin success",
                lambda data: succeeded(data) and data["surface"] == "rr",
                _lose_half,
            ),
        ),
    ),
    Check(
        "attempt-controls",
        "a kept control has its body, a withheld one a reason",
        C.hold_controls,
        (
            lie(
                "withhold a control without a reason",
                ran,
                _control(lambda one: one.update(kept=False, withheldReason=None), lambda one: one["kept"]),
            ),
            lie(
                "keep a control and withhold it",
                ran,
                _control(lambda one: one.update(withheldReason="a reason"), lambda one: one["kept"]),
            ),
        ),
    ),
    Check(
        "attempt-synthetic",
        "what the synthetic engine answered says so",
        C.hold_synthetic,
        (
            lie(
                "turn an attempt's synthetic mark round",
                ran,
                _attempt(lambda data: data.update(synthetic=not data["synthetic"])),
            ),
        ),
    ),
)

INDEX_CHECKS = (
    Check(
        "attempt-index",
        "every attempt has one row of the index",
        index.hold_complete,
        (
            _index_lie("drop an attempt from the index", lambda rows: rows.pop()),
            Mutation("leave a file beside the attempts", _stray),
        ),
    ),
    Check(
        "attempt-index-files",
        "the hashes of the converged index are those of the files",
        index.hold_files,
        (
            _index_lie(
                "write another hash into the converged index", lambda rows: rows[0]["files"].update(samples="0" * 64)
            ),
        ),
    ),
    Check(
        "attempt-index-rows",
        "a row says of an attempt what it says of itself",
        index.hold_rows,
        (
            _index_lie(
                "tell another outcome in the converged index alone",
                lambda rows: rows[0].update(outcome="MISSING_IMAGE"),
            ),
        ),
    ),
    Check(
        "attempt-copy",
        "no attempt is a copy of another",
        C.hold_index_distinct,
        (Mutation("package an attempt twice", _copy),),
    ),
)

FAMILY = Family(kind="attempt", find=C.TABLE.find, open=C.Attempt, checks=CHECKS, documents=C.documents, facts=C.facts)
INDEX_FAMILY = Family(
    kind="package",
    find=lambda view: [""],
    open=C.ConvergedIndex,
    checks=INDEX_CHECKS,
    documents=C.TABLE.documents,
)
CONTROLS = (("attempt-unmatched", lie("alter the hash of a functional receipt", ran, _ledger(_alter_hash))),)

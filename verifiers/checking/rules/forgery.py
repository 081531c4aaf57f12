"""The forger's desk: what a dishonest publisher does with a comparison, and how it is made coherent again."""

from __future__ import annotations

from contextlib import contextmanager
from typing import Any, Callable, Dict, Iterator, List, Optional, Tuple

from checking.check import Scope
from checking.damage import Bench
from checking.package import View
from checking.reading import read_json
from checking.rules.comparison import Comparison, arm_id
from checking.rules.decision import derive

Row = Dict[str, Any]
SETTINGS = "results/settings"
INDEX = "results/settings-index.json"


class Desk:
    """One comparison on the bench."""

    def __init__(self, bench: Bench, folder: str) -> None:
        self.bench = bench
        self.folder = folder

    def path(self, name: str) -> str:
        """A file of the comparison."""
        return "%s/%s" % (self.folder, name)

    def load(self, name: str) -> Any:
        """A document of the comparison."""
        return self.bench.load(self.path(name))

    @contextmanager
    def edit(self, name: str) -> Iterator[Any]:
        """A document of the comparison, stored again."""
        with self.bench.edit(self.path(name)) as value:
            yield value

    @contextmanager
    def samples(self) -> Iterator[List[Row]]:
        """The samples, stored again."""
        with self.edit("samples.json") as value:
            yield value["samples"]

    def ledger_names(self, arm: str = "") -> List[str]:
        """The ledgers of an arm, or of all."""
        start = "ledgers/" + arm
        return [
            one[len(self.folder) + 1 :]
            for one in self.bench.below(self.path("ledgers"))
            if one.startswith(self.path(start))
        ]

    @contextmanager
    def receipt(self, offer: str) -> Iterator[Optional[Row]]:
        """The receipt of an offer, stored again; None when no receipt names it."""
        arm = offer[:4] if offer[0] == "r" else "attempt"
        for name in self.ledger_names(arm):
            ledger = self.load(name)
            for row in ledger["receipts"]:
                if row["requestId"] == offer:
                    yield row
                    self.bench.store(self.path(name), ledger)
                    return
        yield None

    def answer_with(self, row: Row, data: bytes, receipt: bool = True) -> None:
        """Give a sample another response body, and its receipt too; the old body goes when nothing else cites it."""
        old = row["responseSha256"]
        row["responseSha256"], row["responseBytes"] = self.bench.body(self.folder, data), len(data)
        if receipt:
            with self.receipt(row["offer"]) as told:
                if told is not None:
                    told["responseSha256"], told["responseBytes"] = row["responseSha256"], row["responseBytes"]
                    if "content-length" in told["responseHeaders"]:
                        told["responseHeaders"]["content-length"] = str(len(data))
            if old != row["responseSha256"]:
                self.bench.remove(self.path("bodies/" + old))

    def body(self, row: Row) -> bytes:
        """The stored response of a sample."""
        return self.bench.read(self.path("bodies/" + row["responseSha256"]))

    def subject(self) -> Comparison:
        """The comparison as it lies on the bench."""
        overlay = self.bench.overlay()
        view = View(overlay)
        scope = Scope(view, "comparison", self.folder, {})
        for name in self.bench.below(self.folder):
            if name.endswith(".json"):
                scope.documents[name] = read_json(self.bench.read(name))
        return Comparison(scope)

    def redecide(self) -> None:
        """Work the decision out anew and write it, with its row of the index."""
        right = derive(self.subject())
        with self.edit("decision.json") as told:
            told.update({key: right[key] for key in right if key != "disqualifications"})
            told["disqualifications"] = [{"code": code, "detail": "as found"} for code in right["disqualifications"]]
            told["requalification"] = "required" if right["decision"] == "candidate" else "not-required"
        self.index(**{key: right[key] for key in ("decision", "failedGates", "performanceComparisonQualified")})

    def index(self, **values: Any) -> None:
        """Change the comparison's row of the index."""
        with self.bench.edit(INDEX) as index:
            for row in index["comparisons"]:
                if row["folder"] == self.folder:
                    row.update(values)


Lie = Callable[[Desk], Optional[str]]


def first(bench: Bench, wanted: Optional[Callable[[Desk], bool]] = None) -> Optional[Desk]:
    """The first comparison that is wanted."""
    for folder in bench.folders(SETTINGS):
        desk = Desk(bench, folder)
        if wanted is None or wanted(desk):
            return desk
    return None


def forge(tell: Lie, wanted: Optional[Callable[[Desk], bool]], decide: bool, bench: Bench) -> Optional[str]:
    """Tell a lie of the first comparison that is wanted; with `decide` the decision is made to follow from the lie."""
    desk = first(bench, wanted)
    if desk is None:
        return None
    told = tell(desk)
    if told is None:
        return None
    if decide:
        desk.redecide()
    return "%s: %s" % (desk.folder, told)


def streaming(desk: Desk) -> bool:
    """Wanted: a comparison of streams."""
    return bool(desk.load("comparison.json")["protocol"]["stream"])


def main_rows(rows: List[Row], arm: str = "r1-a") -> List[Row]:
    """The main samples of an arm."""
    return [row for row in rows if row["phase"] == "main" and arm_id(row) == arm]


def pick(rows: List[Row], arm: str = "r1-a", place: int = 0) -> Row:
    """One main sample of an arm."""
    return main_rows(rows, arm)[place]


def set_value(document: str, steps: Tuple[Any, ...], value: Any, desk: Desk) -> str:
    """Set one value of one document (`value` may be a function of the old one)."""
    with desk.edit(document) as data:
        for step in steps[:-1]:
            data = data[step]
        data[steps[-1]] = value(data[steps[-1]]) if callable(value) else value
    return "%s#/%s" % (document, "/".join(map(str, steps)))

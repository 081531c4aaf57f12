"""Lies about incomplete comparisons and their index, each coherent but for its meaning."""

from __future__ import annotations

from collections import Counter
from typing import Any, Optional

from checking.damage import Bench
from checking.rules.comparison import Row
from checking.rules.forgery import Desk, Lie
from checking.rules.unfinished import INDEX, KIND_OF, PARENT


def forge(tell: Lie, bench: Bench) -> Optional[str]:
    """Tell a lie of the first incomplete comparison that has something of its kind."""
    for folder in bench.folders(PARENT):
        desk = Desk(bench, folder)
        told = tell(desk)
        if told is not None:
            return "%s: %s" % (folder, told)
    return None


def _on_offer(change: Any, wanted: Any = lambda offer: True) -> Lie:
    """A lie that changes the first wanted offer of offers.json, with its counts."""

    def tell(desk: Desk) -> Optional[str]:
        value = desk.load("offers.json")
        one = next((one for one in value["offers"] if wanted(one)), None)
        if one is None:
            return None
        change(one)
        recount(value)
        desk.bench.store(desk.path("offers.json"), value)
        tell_index(desk, counts=value["counts"])
        return str(one["offer"])

    return tell


def recount(value: Row) -> None:
    """Count the fates of offers.json anew."""
    fates = Counter(KIND_OF[offer["fate"]] for offer in value["offers"])
    value["counts"] = {kind: fates[kind] for kind in KIND_OF.values()}
    value["counts"]["offered"] = len(value["offers"])


def tell_index(desk: Desk, **values: Any) -> None:
    """Change the row of an incomplete comparison."""
    with desk.bench.edit(INDEX) as told:
        for row in told["comparisons"]:
            if row["folder"] == desk.folder:
                row.update(values)


def drop_offer(desk: Desk) -> Optional[str]:
    """Leave an offer out of the middle."""
    value = desk.load("offers.json")
    place = next((place for place, one in enumerate(value["offers"]) if not one["sample"]), None)
    if place is None:
        return None
    gone = value["offers"].pop(place)
    recount(value)
    desk.bench.store(desk.path("offers.json"), value)
    tell_index(desk, counts=value["counts"])
    return str(gone["offer"]) + " dropped"


def drop_sampled(desk: Desk) -> Optional[str]:
    """Leave out an offer that has a sample."""
    value = desk.load("offers.json")
    if not value["offers"] or not value["offers"][0]["sample"]:
        return None
    gone = value["offers"].pop(0)
    recount(value)
    desk.bench.store(desk.path("offers.json"), value)
    tell_index(desk, counts=value["counts"])
    return str(gone["offer"]) + " dropped"


def alter_partial(desk: Desk) -> Optional[str]:
    """Change the bytes of an upstream partial under its old name."""
    names = desk.bench.below(desk.path("partials"))
    if not names:
        return None
    data = desk.bench.read(names[0])
    desk.bench.put(names[0], data[:-1] + bytes([(data[-1] if data else 0) ^ 1]))
    return names[0]


def partial_as_whole(desk: Desk) -> Optional[str]:
    """Keep an upstream partial as a whole body."""
    for name in desk.bench.below(desk.path("partials")):
        if not desk.bench.has(desk.path("bodies/" + name.rsplit("/", 1)[1])):
            desk.bench.body(desk.folder, desk.bench.read(name))
            return "a partial kept in bodies"
    return None


def drop_partial(desk: Desk) -> Optional[str]:
    """Take a partial away."""
    names = desk.bench.below(desk.path("partials"))
    if names:
        desk.bench.remove(names[0])
    return names[0] if names else None


def complete_partial(desk: Desk) -> Optional[str]:
    """Count a timed-out offer as completed by its upstream bytes."""
    return _on_offer(lambda one: one.update(fate="completed"), lambda one: one["fate"] == "timed-out")(desk)


def alter_receipt(desk: Desk) -> Optional[str]:
    """Alter the hash of a receipt."""
    for name in desk.ledger_names():
        value = desk.load(name)
        row = next((row for row in value["receipts"] if row["traffic"] and row["complete"]), None)
        if row is not None:
            row["responseSha256"] = ("0" if row["responseSha256"][0] != "0" else "1") + row["responseSha256"][1:]
            desk.bench.store(desk.path(name), value)
            return "%s#%d" % (name, row["sequence"])
    return None


def decide(desk: Desk) -> str:
    """Leave a decision beside an incomplete comparison."""
    desk.bench.store(desk.path("decision.json"), {"decision": "candidate", "schemaVersion": 1})
    return "decision.json added"


def select(bench: Bench) -> Optional[str]:
    """Let a recipe rest on an incomplete comparison, and on no complete one of that name."""
    names = [name for name in bench.below(PARENT) if name.endswith("/comparison.json")]
    if not names or not bench.has("recipes.json"):
        return None
    value = bench.load("recipes.json")
    if not value["recipes"]:
        return None
    incomplete = [bench.load(name)["comparison"] for name in names]
    with bench.edit("results/settings-index.json") as index:
        complete = {row["id"] for row in index["comparisons"]}
        told = next((one for one in incomplete if one not in complete), incomplete[0])
        index["comparisons"] = [
            row for row in index["comparisons"] if row["id"] != told
        ]  # else it would be its setting
    value["recipes"][0].update(comparison=told, selected="candidate")
    bench.store("recipes.json", value)
    return "a recipe rests on " + str(told)


def _on_sample(change: Any) -> Lie:
    """A lie that changes the first sample."""

    def tell(desk: Desk) -> Optional[str]:
        value = desk.load("samples.json")
        if not value["samples"]:
            return None
        change(value["samples"][0])
        desk.bench.store(desk.path("samples.json"), value)
        return str(value["samples"][0]["offer"])

    return tell


def _on_data(change: Any) -> Lie:
    """A lie that changes comparison.json; `change` says False when there is nothing of the kind."""

    def tell(desk: Desk) -> Optional[str]:
        value = desk.load("comparison.json")
        if change(value) is False:
            return None
        desk.bench.store(desk.path("comparison.json"), value)
        return "comparison.json"

    return tell


def _swap_arms(value: Row) -> Any:
    """Reverse the arms."""
    if len(value["arms"]) < 2:
        return False
    value["arms"].reverse()
    return True


def _abort_early(value: Row) -> Any:
    """Abort a run before it began."""
    if not value["arms"]:
        return False
    value["abortedAt"] = "2000-01-01T00:00:00.000000Z"
    return True


def remove_body(desk: Desk) -> Optional[str]:
    """Take a stored body away."""
    rows = desk.load("samples.json")["samples"]
    if not rows:
        return None
    desk.bench.remove(desk.path("bodies/" + rows[0]["responseSha256"]))
    return str(rows[0]["offer"])


def alter_body(desk: Desk) -> Optional[str]:
    """Alter a body under its old name."""
    rows = desk.load("samples.json")["samples"]
    if not rows:
        return None
    desk.bench.put(desk.path("bodies/" + rows[0]["responseSha256"]), desk.body(rows[0]) + b" ")
    return str(rows[0]["offer"])


def miscount(desk: Desk) -> str:
    """Count a failure more."""
    with desk.edit("offers.json") as value:
        value["counts"]["failed"] += 1
    tell_index(desk, counts=value["counts"])
    return "a failure more"


def shift(desk: Desk) -> Optional[str]:
    """Give all receipts of a ledger one number."""
    for name in desk.ledger_names():
        value = desk.load(name)
        if len(value["receipts"]) > 1:
            for row in value["receipts"]:
                row["sequence"] = 1
            desk.bench.store(desk.path(name), value)
            return name
    return None


def _be_ready_early(value: Row) -> Any:
    """Let an engine be ready before its start."""
    for arm in value["arms"]:
        if arm["timeline"] and arm["timeline"]["engineStartedSeconds"] and arm["timeline"]["readySeconds"]:
            arm["timeline"]["readySeconds"] = 0
            return True
    return False


def other_snapshots(desk: Desk) -> Optional[str]:
    """Name another run in snapshots.json."""
    if not desk.bench.has(desk.path("snapshots.json")):
        return None
    with desk.edit("snapshots.json") as value:
        value["comparison"] = "another"
    return "snapshots.json of another run"


def other_comparison(desk: Desk) -> str:
    """Tell an incomplete comparison as one of another name, in the index too."""
    with desk.edit("comparison.json") as value:
        value["comparison"] = "another"
    tell_index(desk, comparison="another")
    return "comparison.json of another comparison"


other_run = _on_data(lambda value: value.update(run="another"))
reverse_arms = _on_data(_swap_arms)
other_phase = _on_offer(lambda one: one.update(phase="main"), lambda one: one["phase"] != "main")
never_started = _on_offer(
    lambda one: one.update(fate="never-started", sample=False), lambda one: one["fate"] == "completed"
)
complete_unanswered = _on_offer(lambda one: one.update(fate="completed"), lambda one: not one["sample"])
lose_client = _on_offer(
    lambda one: one.update(client=None), lambda one: one["client"] is not None and one["client"]["bytes"]
)
other_request = _on_offer(lambda one: one.update(requestBytes=one["requestBytes"] + 1), lambda one: one["sample"])
other_worker = _on_offer(
    lambda one: one.update(worker="worker-2" if one["worker"] == "worker-1" else "worker-1"),
    lambda one: one["sample"] and one["phase"] == "native-warm",
)
complete_upstream = _on_offer(
    lambda one: one["upstream"].update(complete=True),
    lambda one: one["upstream"] is not None and not one["upstream"]["complete"],
)
forget_upstream = _on_offer(lambda one: one.update(upstream=None), lambda one: one["upstream"] is not None)
longer_response = _on_sample(lambda row: row.update(responseBytes=row["responseBytes"] + 1))
other_class = _on_sample(
    lambda row: row.update(classification="CAPPED" if row["classification"] != "CAPPED" else "NORMAL")
)
call_functional = _on_sample(lambda row: row.update(phase="functional"))
more_tokens = _on_sample(lambda row: row.update(completionTokens=999))
be_ready_early = _on_data(_be_ready_early)
abort_early = _on_data(_abort_early)

"""What lies do to a lifecycle record: each edits one record in memory, as a dishonest publisher would, or breaks its form."""

from __future__ import annotations

from decimal import Decimal
from typing import Any, Callable, Dict, Optional

from checking.damage import Bench
from checking.rules.lifecycle import SINGLE
from checking.rules.lifecycle_index import RECORDS
from checking.rules.lifecycle_record import kind_of

Lie = Callable[[Bench], Optional[str]]
Edit = Callable[[Dict[str, Any]], Optional[str]]


def names(bench: Bench) -> Any:
    """The records on the bench: of a package, or the one that stands alone."""
    found = [name for name in bench.below(RECORDS) if name.endswith(".json")]
    return found or ([SINGLE] if bench.has(SINGLE) else [])


def on_record(edit: Edit) -> Lie:
    """A lie about a whole record."""

    def damage(bench: Bench) -> Optional[str]:
        for path in names(bench):
            record = bench.load(path)
            said = edit(record)
            if said is not None:
                bench.store(path, record)
                return "%s %s" % (path, said)
        return None

    return damage


def on_experiment(kind: str, edit: Edit) -> Lie:
    """A lie about the first experiment of a kind in which the edit finds something (`` is any kind)."""

    def damage(record: Dict[str, Any]) -> Optional[str]:
        for experiment in record["experiments"]:
            if not kind or kind_of(experiment) == kind:
                said = edit(experiment)
                if said is not None:
                    return "%s %s" % (experiment["id"], said)
        return None

    return on_record(damage)


def on_bytes(change: Callable[[bytes], bytes]) -> Lie:
    """A lie in a record's bytes."""

    def damage(bench: Bench) -> Optional[str]:
        for path in names(bench):
            bench.put(path, change(bench.read(path)))
            return str(path)
        return None

    return damage


def dig(value: Any, path: str) -> Any:
    """What stands at a path of keys and numbers (`measurements/phase_counts`); None where it ends."""
    for step in path.split("/") if path else []:
        if isinstance(value, list):
            number = int(step)
            value = value[number] if -len(value) <= number < len(value) else None
        else:
            value = value.get(step) if isinstance(value, dict) else None
        if value is None:
            return None
    return value


def change(kind: str, path: str, new: Callable[[Any, Dict[str, Any]], Any]) -> Lie:
    """Put new(old, experiment) at a path of an experiment."""

    def edit(experiment: Dict[str, Any]) -> Optional[str]:
        parent, _, last = path.rpartition("/")
        holder = dig(experiment, parent)
        old = dig(experiment, path)
        if holder is None or old is None:
            return None
        made = new(old, experiment)
        if made is None:
            return None
        holder[int(last) if isinstance(holder, list) else last] = made
        return "%s: %s for %s" % (path, made, old)

    return on_experiment(kind, edit)


def add(kind: str, path: str, by: Any) -> Lie:
    """Add to a figure."""
    return change(kind, path, lambda old, _: old + (Decimal(by) if isinstance(by, str) else by))


def put(kind: str, path: str, value: Any) -> Lie:
    """Replace a figure by a fixed one."""
    return change(kind, path, lambda old, _: Decimal(value[1:]) if str(value).startswith("=") else value)

"""From the raw events of a run to the part of an experiment that follows from them, whatever its protocol."""

from __future__ import annotations

from typing import Callable, Dict

from checking.rules.lifecycle_events import (
    Events,
    EventsFault,
    Part,
    derive_co_residency,
    derive_crash,
    derive_lora,
)
from checking.rules.lifecycle_selection_events import derive_selection

DERIVE: Dict[str, Callable[[Events], Part]] = {
    "co-residency": derive_co_residency,
    "crash": derive_crash,
    "lora": derive_lora,
    "selection": derive_selection,
}


def derive(events: Events) -> Part:
    """What follows from the events. Raises EventsFault when they lack what a figure needs."""
    protocol = events[0].get("protocol")
    if protocol not in DERIVE:
        raise EventsFault("line 1", str(protocol), "one of %s" % ", ".join(DERIVE))
    try:
        return DERIVE[str(protocol)](events)
    except (KeyError, IndexError, TypeError, ValueError, AttributeError, StopIteration) as error:
        raise EventsFault(
            "the events",
            "nothing for %s" % type(error).__name__ + (" %s" % error if str(error) else ""),
            "every event that a figure needs",
        ) from None

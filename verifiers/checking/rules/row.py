"""A row of the table of comparisons: a check, and the coherent forgeries of one comparison that prove it."""

from __future__ import annotations

from functools import partial
from typing import Any, Callable, Optional, Tuple

from checking.check import Check, Mutation
from checking.later import Later

forgery = Later("checking.rules.forgery")
Tell = Callable[..., Any]


def row(code: str, truth: str, hold: Any, *mutations: Mutation, needs: Tuple[str, ...] = ()) -> Check:
    """A check with its mutations behind one another."""
    return Check(code, truth, hold, mutations, needs)


def lie(name: str, tell: Tell, wanted: Optional[Tell] = None, decide: bool = False) -> Mutation:
    """A coherent forgery of one comparison; with `decide` the decision is made to follow from the lie."""
    return Mutation(name, partial(forgery.forge, tell, wanted, decide))


def setting_to(name: str, document: str, steps: Tuple[Any, ...], value: Any) -> Mutation:
    """A forgery that sets one value of one document (`value` may be a function of the old one)."""
    return lie(name, partial(forgery.set_value, document, steps, value))

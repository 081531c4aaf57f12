"""Instants of documents and of the ids of runs."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Optional

STAMP = re.compile(r"-(\d{4})(\d{2})(\d{2})t(\d{2})(\d{2})(\d{2})\.(\d{6})z\Z")


def instant(text: str) -> datetime:
    """An instant of a document that has its shape. Raises ValueError on a day that no calendar has."""
    return datetime.fromisoformat(text[:-1])  # strptime alone would cost as much as the rest of a start


def moment(text: str) -> float:
    """An instant as seconds since 1970, for comparing; 0 when no calendar has that day."""
    try:
        return (instant(text) - datetime(1970, 1, 1)).total_seconds()
    except ValueError:
        return 0.0


def begun(run: str) -> Optional[str]:
    """The instant when a run began by its id, `<name>-20261130t081500.123456z`; None when it does not tell."""
    match = STAMP.search(run)
    return None if match is None else "%s-%s-%sT%s:%s:%s.%sZ" % match.groups()


def run_name(run: str) -> str:
    """What ran, by the id of its run: all that stands before the stamp."""
    return STAMP.sub("", run)


def stamp(run: str) -> float:
    """When a run began by its id, as seconds since 1970; 0 when it does not tell."""
    told = begun(run)
    return 0.0 if told is None else moment(told)

"""What a launch gives a setting: the values of an argument, or of a variable."""

from __future__ import annotations

from typing import Any, Dict, List, Tuple

Row = Dict[str, Any]


def values_of(arguments: List[str], argument: str) -> List[Tuple[int, str, bool]]:
    """(place, value, joined) of every use of an argument: `--x v` or `--x=v`."""
    found = []
    for place, word in enumerate(arguments):
        if word == argument and place + 1 < len(arguments):
            found.append((place, arguments[place + 1], False))
        elif word.startswith(argument + "="):
            found.append((place, word[len(argument) + 1 :], True))
    return found


def launch_values(launch: Row, argument: str) -> List[str]:
    """The values that a launch gives a setting: an argument's, or with `ENV:NAME` a variable's."""
    if argument.startswith("ENV:"):
        return [launch["environment"][argument[4:]]] if argument[4:] in launch["environment"] else []
    return [value for _, value, _ in values_of(launch["arguments"], argument)]

"""One TOML table, read strictly: every key is asked for once, and what nobody asked for is refused.

Each reading names the file, the table and the key, what was found and what was expected. Nothing is
coerced: a number in quotes is text, `true` is not 1, and `nan` and `inf`, which TOML allows, are no numbers.
"""

from __future__ import annotations

import difflib
import hashlib
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

from evidence.errors import EvidenceError

ID = re.compile(r"[a-z0-9][a-z0-9.-]{0,62}")
HASH = re.compile(r"[0-9a-f]{64}")
VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
TURNS = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
"""Characters that turn the direction of a text, so that it reads otherwise than it is."""
SHOWN = 120


class RetainedFile(NamedTuple):
    """A file of the campaign folder: its name there (slashes), where it is, and its SHA-256 and length when read."""

    name: str
    path: Path
    sha256: str
    size: int

    def read(self) -> bytes:
        """The bytes as they are now."""
        return self.path.read_bytes()


def nearest(word: str, known: Iterable[str]) -> str:
    """A hint that names the known word that `word` was probably meant to be, or all of them."""
    names = sorted(known)
    close = difflib.get_close_matches(word, names, n=1, cutoff=0.6)
    if close:
        return f"did you mean {close[0]!r}?"
    return "known are " + ", ".join(names) if names else "there is none"


class Table:
    """A table of a campaign file together with the place where it stands.

    `place` is what a person would look for (`[campaign]`, `[[case]] "demo-rr"`). Readings remove their key;
    `end()` refuses whatever is left.
    """

    def __init__(self, source: Path, place: str, content: Mapping[str, Any]) -> None:
        self.source = source
        self.folder = source.parent
        self.place = place
        self.content = dict(content)
        self.asked: set[str] = set()

    def error(self, key: str, found: str, expected: str, hint: str = "") -> EvidenceError:
        """The refusal for `key`: file, table and key, found, expected; whatever the campaign says, on one line."""
        place = plain(f"{self.source}, {self.place}, {cut(key)}")
        return EvidenceError(f"{place}: found {plain(cut(found))}, expected {expected}", plain(cut(hint)))

    def take(self, key: str, kind: type | tuple[type, ...], expected: str) -> Any:
        """The value of `key` if it is there and of that type, None if it is not there."""
        self.asked.add(key)
        if key not in self.content:
            return None
        value = self.content.pop(key)
        kinds = kind if isinstance(kind, tuple) else (kind,)
        if isinstance(value, bool) and bool not in kinds:
            raise self.error(key, repr(value).lower(), expected)
        if not isinstance(value, kind):
            raise self.error(key, f"{shown(value)} ({type(value).__name__})", expected)
        return value

    def needed(self, key: str, value: Any, expected: str) -> Any:
        """`value`, refused when it is None: the key was left out."""
        if value is None:
            raise self.error(key, "nothing", expected, self.hint_for_missing(key))
        return value

    def hint_for_missing(self, key: str) -> str:
        """A hint when something that looks like `key` stands there instead."""
        close = difflib.get_close_matches(key, [name for name in self.content if name not in self.asked], n=1)
        return f"{close[0]!r} stands there; did you mean {key!r}?" if close else f"add {key} to {self.place}"

    def text(self, key: str, default: str | None = None) -> str:
        """A non-empty string without control characters."""
        return str(self.needed(key, self.optional_text(key) or default, "a non-empty string"))

    def optional_text(self, key: str) -> str | None:
        value = self.take(key, str, "a string")
        if value is not None and not _is_line(value):
            raise self.error(key, repr(value), "a non-empty string without control characters")
        return None if value is None else str(value)

    def id(self, key: str = "id") -> str:
        """An id: `[a-z0-9][a-z0-9.-]{0,62}`."""
        value = self.text(key)
        if not ID.fullmatch(value):
            raise self.error(key, repr(value), "an id of lower-case letters, digits, dots and hyphens, at most 63 long")
        return value

    def choice(self, key: str, options: Sequence[str], default: str | None = None) -> str:
        value = self.text(key, default)
        if value not in options:
            raise self.error(key, repr(value), "one of " + ", ".join(options), nearest(value, options))
        return value

    def reference(self, key: str, known: Mapping[str, Any], what: str) -> str:
        """The id of something that the campaign defines."""
        value = self.text(key)
        if value not in known:
            raise self.error(key, repr(value), f"the id of {what} of this campaign", nearest(value, known))
        return value

    def flag(self, key: str, default: bool | None = None) -> bool:
        value = self.take(key, bool, "true or false")
        return bool(self.needed(key, default if value is None else value, "true or false"))

    def optional_flag(self, key: str) -> bool | None:
        value: bool | None = self.take(key, bool, "true or false")
        return value

    def integer(self, key: str, default: int | None = None, *, least: int = 0, most: int = 2**53 - 1) -> int:
        expected = f"an integer from {least} to {most}"
        value = self.take(key, int, expected)
        value = self.needed(key, default if value is None else value, expected)
        if not least <= value <= most:
            raise self.error(key, shown(value), expected)
        return int(value)

    def seconds(self, key: str, default: float, *, most: float = 86400.0) -> float:
        """A duration: a finite number above 0."""
        expected = f"seconds above 0 and at most {most:g}"
        value = self.take(key, (int, float), expected)
        number = default if value is None else value
        if not 0 < number <= most:  # of integers as they are: one of 400 digits is no float
            raise self.error(key, shown(value), expected)
        return float(number)

    def texts(self, key: str, default: Sequence[str] | None = None) -> tuple[str, ...]:
        """A list of strings (empty ones allowed: a command line may hold one)."""
        value = self.take(key, list, "a list of strings")
        value = self.needed(key, default if value is None else value, "a list of strings")
        for position, item in enumerate(value):
            if not isinstance(item, str) or "\0" in item:
                raise self.error(f"{key}[{position}]", shown(item), "a string")
        return tuple(value)

    def lines(self, key: str) -> tuple[str, ...]:
        """A list of texts, each as `text` wants it; empty when it is not there."""
        values = self.texts(key, ())
        for position, value in enumerate(values):
            if not _is_line(value):
                raise self.error(f"{key}[{position}]", repr(value), "a non-empty string without control characters")
        return values

    def choices(self, key: str, options: Sequence[str], default: Sequence[str] | None = None) -> tuple[str, ...]:
        """A list of different words out of `options`."""
        values = self.texts(key, default)
        for value in values:
            if value not in options:
                raise self.error(key, repr(value), "words out of " + ", ".join(options), nearest(value, options))
        if len(set(values)) != len(values):
            raise self.error(key, ", ".join(values), "each word once")
        return values

    def mapping(self, key: str) -> dict[str, str]:
        """A table of names to strings; empty when it is not there."""
        value = self.take(key, dict, "a table of strings") or {}
        for name, item in value.items():
            if not isinstance(item, str) or "\0" in item:
                raise self.error(f"{key}.{name}", shown(item), "a string")
        return dict(value)

    def variables(self, key: str) -> dict[str, str]:
        """A table of environment variables to their values."""
        values = self.mapping(key)
        for name in values:
            if not VARIABLE.fullmatch(name):
                raise self.error(
                    key,
                    f"the name {shown(name)}",
                    "names of letters, digits and underscores, none beginning with a digit",
                )
        return values

    def program(self, key: str) -> tuple[str, ...]:
        """A command, or nothing: its first word names a program."""
        words = self.texts(key, ())
        if words and not words[0].strip():
            raise self.error(f"{key}[0]", shown(words[0]), "the name of a program")
        return words

    def hash(self, key: str) -> str:
        return str(self.needed(key, self.optional_hash(key), "64 lower-case hex digits"))

    def optional_hash(self, key: str) -> str | None:
        value = self.optional_text(key)
        if value is not None and not HASH.fullmatch(value):
            raise self.error(key, repr(value), "64 lower-case hex digits", "it is what sha256sum prints")
        return value

    def table(self, key: str) -> Table | None:
        """The table under `key`, to be read strictly in its turn."""
        value = self.take(key, dict, "a table")
        return None if value is None else Table(self.source, f"{self.place}, {key}", value)

    def tables(self, key: str) -> list[Table]:
        """The tables of a list of tables; empty when it is not there."""
        value = self.take(key, list, "a list of tables") or []
        found = []
        for position, item in enumerate(value):
            if not isinstance(item, dict):
                raise self.error(f"{key}[{position}]", shown(item), "a table")
            label = item.get("id", item.get("name", item.get("path")))
            found.append(
                Table(
                    self.source, f"[[{key}]] " + (shown(label) if isinstance(label, str) else str(position + 1)), item
                )
            )
        return found

    def file(self, key: str) -> RetainedFile:
        return self.retained(key, self.text(key))

    def optional_file(self, key: str) -> RetainedFile | None:
        value = self.optional_text(key)
        return None if value is None else self.retained(key, value)

    def retained(self, key: str, name: str) -> RetainedFile:
        """The file of that name, which must be a regular one inside the campaign folder."""
        path = self.inside(key, name)
        if not path.is_file():
            raise self.error(key, f"no file {name}", f"a file in {self.folder}", "add the file or correct its name")
        try:
            content = path.read_bytes()
        except OSError as error:
            raise self.error(key, f"{name}, which cannot be read ({error.strerror})", "a file that can be") from None
        return RetainedFile(PurePosixPath(name).as_posix(), path, hashlib.sha256(content).hexdigest(), len(content))

    def optional_folder(self, key: str) -> str | None:
        """The name of a folder inside the campaign folder."""
        value = self.optional_text(key)
        if value is None:
            return None
        if not self.inside(key, value).is_dir():
            raise self.error(key, f"no folder {value}", f"a folder in {self.folder}")
        return PurePosixPath(value).as_posix()

    def inside(self, key: str, name: str) -> Path:
        """The path of `name`, refused when it leads out of the campaign folder, by a link too."""
        pure = PurePosixPath(name)
        path = self.folder / name
        if pure.is_absolute() or ".." in pure.parts or "\\" in name:
            raise self.error(key, repr(name), "a relative path inside the campaign folder, without ..")
        try:
            path.exists()  # says of a name that is too long what `resolve` leaves to whoever opens it
            real = path.resolve()
        except (OSError, RuntimeError) as error:
            why = getattr(error, "strerror", None) or "a link that leads to itself"
            raise self.error(key, f"{shown(name)}, which cannot be looked up ({why})", "a path inside it") from None
        if not real.is_relative_to(self.folder.resolve()):
            raise self.error(key, f"{shown(name)}, which leads out of the campaign folder", "a path inside it")
        return path

    def end(self) -> None:
        """Refuses the first key that nobody asked for."""
        for key in self.content:
            raise self.error(key, "an unknown key", "one of " + ", ".join(sorted(self.asked)), nearest(key, self.asked))


def _is_line(value: str) -> bool:
    """Whether there is something to see in it, and nothing that breaks the line or turns its direction."""
    seen = any(c.isprintable() and not c.isspace() for c in value)
    return seen and not any(unicodedata.category(c) in ("Cc", "Zl", "Zp") or c in TURNS for c in value)


def shown(value: Any) -> str:
    """A value as a message shows it, cut to what fits on a line."""
    try:
        return cut(repr(value), 60)
    except ValueError:  # Python writes no integer of more than 4300 digits
        return "a number of thousands of digits"


def cut(text: str, most: int = SHOWN) -> str:
    """At most that many characters of a text."""
    return text if len(text) <= most else text[: most - 3] + "..."


def plain(text: str) -> str:
    """A text on one line, with what is not to be seen as escapes."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)

"""Lists every mutant of the judging code and chooses a sample that a seed fixes.

A place is one operator's reach: cosmic-ray has eleven replacements for one `+`, of which one is drawn, so that a
place counts once. Left out is what judges nothing: annotations and text formatting, how much is remembered, read or
shown at once; and in the modules of rules the forgeries, which are the functions that take a bench or are reached from
the tables of mutations alone.

The draw ranks places by a hash of the seed and of what stands there. A change of the code moves only its own
mutants, and the first forty of a sample are the sample of forty.
"""

from __future__ import annotations

import ast
import hashlib
import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code
from cosmic_ray.plugins import get_operator, operator_names

from mutants.targets import RULES, SIZES, TARGETS, Target

SEED = 20
# Three families are two hundred operators; each looks at few nodes.
LOOKS: dict[str, Callable[[Any], bool]] = {
    "core/ReplaceComparisonOperator": lambda node: node.type == "comparison",
    "core/ReplaceBinaryOperator": lambda node: node.type == "operator" and node.value in BINARY,
    "core/ReplaceUnaryOperator": lambda node: node.type in ("factor", "not_test"),
}
BINARY = frozenset(("+", "-", "*", "/", "//", "%", "**", ">>", "<<", "|", "&", "^"))
Place = tuple[int, int]


class Mutant(NamedTuple):
    """One alteration: where, by which operator, and the line before and after."""

    path: str
    line: int
    function: str
    before: str
    after: str

    def key(self) -> tuple[str, str, str, str]:
        """What names it in survivors.toml, wherever its lines move."""
        return self.path, self.function, self.before, self.after

    def __str__(self) -> str:
        return f"{self.path}:{self.line} {self.function}: `{self.before}` -> `{self.after}`"


class _Spans:
    """Which places of a module are judging code, and whose."""

    def __init__(self, source: str, path: str) -> None:
        self.tree = ast.parse(source)
        self.silent: list[tuple[Place, Place]] = []
        self.functions: list[tuple[Place, Place, str]] = []
        self._walk(self.tree, "")
        self.alive = self._alive() if path.startswith(RULES) else None

    def _walk(self, node: ast.AST, name: str) -> None:
        for child in ast.iter_child_nodes(node):
            inner = name
            if isinstance(child, ast.FunctionDef | ast.ClassDef):
                inner = f"{name}.{child.name}" if name else child.name
                self.functions.append((*_span(child), inner))
            for part in (getattr(child, "annotation", None), getattr(child, "returns", None)):
                if isinstance(part, ast.expr):
                    self.silent.append(_span(part))
            if isinstance(child, ast.BinOp) and isinstance(child.op, ast.Mod):
                text = child.left
                if isinstance(text, ast.Constant) and isinstance(text.value, str | bytes):
                    self.silent.append(_span(text))
                    self.silent.append((_span(text)[1], _span(child.right)[0]))
            if isinstance(child, ast.Expr) and isinstance(child.value, ast.Constant):
                self.silent.append(_span(child))
            self.silent += _indifferent(child)
            self._walk(child, inner)

    def _alive(self) -> set[str]:
        """Top functions that judge: public ones that take no bench and make no mutation, and what they call."""
        tops = {one.name: one for one in self.tree.body if isinstance(one, ast.FunctionDef | ast.ClassDef)}
        forging = {name for name, one in tops.items() if isinstance(one, ast.FunctionDef) and _forges(one)}
        alive: set[str] = set()
        waiting = [name for name in tops if not name.startswith("_") and name not in forging]
        while waiting:
            name = waiting.pop()
            if name in alive or name not in tops or name in forging:
                continue
            alive.add(name)
            waiting += [one.id for one in ast.walk(tops[name]) if isinstance(one, ast.Name)]
        return alive

    def owner(self, place: Place) -> str | None:
        """The function of a place, `module` outside of any; None when nothing there judges."""
        if any(start <= place < end for start, end in self.silent):
            return None
        found = [name for start, end, name in self.functions if start <= place < end]
        owner = max(found, key=len, default="module")
        if self.alive is not None and owner.split(".")[0] not in self.alive:
            return None
        return owner


def _indifferent(node: ast.AST) -> Iterator[tuple[Place, Place]]:
    """What changes no verdict by its construction: memories, their sizes and those of buffers, slots, widths of output."""

    def sized(one: ast.AST) -> bool:
        return (one.id if isinstance(one, ast.Name) else getattr(one, "attr", "")) in SIZES

    if isinstance(node, ast.Assign) and any(map(sized, node.targets)):
        yield _span(node)
    if isinstance(node, ast.Compare) and any(map(sized, ast.walk(node))):
        yield _span(node)
    for one in getattr(node, "decorator_list", ()):
        if "lru_cache" in ast.dump(one):
            (line, column), end = _span(one)
            yield (line, column - 1), end  # from its @
    if isinstance(node, ast.Call):
        yield from (_span(one.value) for one in node.keywords if one.arg in ("maxsize", "slots"))
        if isinstance(node.func, ast.Name) and node.func.id == "shown":
            yield from map(_span, node.args[1:])


def _span(node: ast.AST) -> tuple[Place, Place]:
    return (node.lineno, node.col_offset), (node.end_lineno, node.end_col_offset)  # type: ignore[attr-defined]


def _forges(function: ast.FunctionDef) -> bool:
    told = ast.dump(function.returns) if function.returns is not None else ""
    takes = any(one.arg == "bench" for one in function.args.args)
    return takes or any(word in told for word in ("'Mutation'", "'Check'", "'Edit'"))


class _Drawn(NamedTuple):
    rank: float
    target: Target
    operator: str
    occurrence: int
    place: Place
    function: str


def _places(root: Path, target: Target, seed: int) -> list[_Drawn]:
    source = (root / target.path).read_text()
    spans, lines = _Spans(source, target.path), source.split("\n")
    nodes = list(ast_nodes(get_ast(source)))
    looked_at = {family: [node for node in nodes if looks(node)] for family, looks in LOOKS.items()}
    found: dict[tuple[Place, str], list[_Drawn]] = {}
    seen: dict[str, int] = {}
    for name in sorted(operator_names()):
        operator = get_operator(name)
        if operator.arguments() or name.endswith("NoOp"):
            continue
        family = name.split("_")[0]
        reach = (at for node in looked_at.get(family, nodes) for at in operator().mutation_positions(node))
        for occurrence, (start, _) in enumerate(reach):
            owner = spans.owner(start)
            if owner is None:
                continue
            text = f"{seed} {target.path} {owner} {name} {lines[start[0] - 1].strip()}"
            again = seen[text] = seen.get(text, -1) + 1
            rank = int.from_bytes(hashlib.sha256(f"{text} {again}".encode()).digest()[:8], "big") / 2**64
            found.setdefault((start, family), []).append(
                _Drawn(rank / target.weight, target, name, occurrence, start, owner)
            )
    # The least of n ranks would favour places with many replacements: the place has the rank of its first.
    return [min(rows)._replace(rank=rows[0].rank) for rows in found.values()]


def count(root: Path, targets: tuple[Target, ...] = TARGETS) -> int:
    """How many places there are in all."""
    return sum(len(_places(root, target, SEED)) for target in targets)


def draw(
    root: Path, size: int, seed: int = SEED, targets: tuple[Target, ...] = TARGETS
) -> Iterator[tuple[Mutant, Target, str]]:
    """A sample: each mutant with its target and the altered source of the module, made when it is asked for."""
    left = size
    for one in sorted(itertools.chain.from_iterable(_places(root, target, seed) for target in targets)):
        if not left:
            return
        source = (root / one.target.path).read_text()
        altered = mutate_code(source, get_operator(one.operator)(), one.occurrence)
        if altered is None or altered == source:
            continue
        left -= 1
        lines = _changed(source, altered, one.place[0])
        yield Mutant(one.target.path, one.place[0], one.function, *lines), one.target, altered


def _changed(source: str, altered: str, line: int) -> tuple[str, str]:
    """The altered line before and after, without indentation; of a decorator that was dropped, its line and nothing."""
    old, new = source.split("\n"), altered.split("\n")
    if len(old) == len(new):
        for before, after in zip(old, new, strict=True):
            if before != after:
                return before.strip(), after.strip()
    return old[line - 1].strip(), ""

"""The closed tree has a place for everything that is shipped: a new schema or tool has to be named there too."""

from __future__ import annotations

from checking.rules import tree

from tests.verifiers.kill_matrix import ROOT


def test_the_fixed_names_are_those_that_are_shipped() -> None:
    shipped = {
        path.relative_to(ROOT / "verifiers").as_posix()
        for path in (ROOT / "verifiers").rglob("*")
        if path.is_file() and path.suffix != ".pyc"
    }
    shipped |= {f"schemas/{path.name}" for path in (ROOT / "schemas").glob("*.json")}
    strange = {name for name in shipped if name not in tree.FIXED and not tree.PLACES.fullmatch(name)}
    assert not strange, "name it in verifiers/checking/rules/tree.py"

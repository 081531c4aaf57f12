"""The closed tree names exactly what is shipped: a new module, schema or tool has to be named there too."""

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
    fixed = {name for name in tree.FIXED if name.startswith(("checking/", "schemas/")) or name.endswith(".py")}
    assert all(tree.PLACES.fullmatch(name) for name in shipped if name.startswith("checking/rules/"))
    shipped = {name for name in shipped if not name.startswith("checking/rules/")}
    assert shipped == fixed | {"CHECKS.md"}, "name it in verifiers/checking/rules/tree.py"

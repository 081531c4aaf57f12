"""docs/fields.md says of every field who notices when it lies; nothing is unseen without a reason that is written down."""

from __future__ import annotations

import re

import pytest

from tests.verifiers.fields import PAGE, WHY, Field, fate, fields, line_of, rows_of, why

pytestmark = pytest.mark.xdist_group("kill-matrix")
EACH = 16


def test_the_page_has_every_field_and_no_other() -> None:
    told = rows_of(PAGE.read_text())
    assert set(told) == {(field.document, field.pointer) for field in fields()}, "run python -m tests.verifiers.fields"


def test_what_goes_unseen_has_a_reason_among_what_a_package_does_not_prove() -> None:
    items = set(re.findall(r"^(\d+)\. \*\*", (PAGE.parent / "what-this-does-not-prove.md").read_text(), re.MULTILINE))
    assert {str(item) for _, _, item in WHY} <= items
    known = {(field.document, field.pointer): why(field) for field in fields()}
    for place, row in rows_of(PAGE.read_text()).items():
        assert row.endswith("| none |") or known[place] is not None, row


@pytest.mark.parametrize("field", fields()[7::EACH], ids=lambda field: f"{field.document}:{field.pointer}")
def test_a_field_is_noticed_by_those_that_the_page_names(field: Field) -> None:
    assert rows_of(PAGE.read_text())[field.document, field.pointer] == line_of(field, fate(field))

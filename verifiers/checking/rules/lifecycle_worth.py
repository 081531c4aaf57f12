"""What the verification of a figure can be worth.

`recomputed`: follows from other figures of the record, so that any other value is rejected. `bounded`: other figures
leave it a range. `required`: the one value with which the experiment's claim stands; the record alone cannot show
that it was so. `checked`: a hash that was held against the file of the raw evidence. `declared`: nothing in the record
speaks for or against it, but for its form.
"""

from __future__ import annotations

from typing import Any, Dict, Sequence

WORTHS = RECOMPUTED, BOUNDED, REQUIRED, CHECKED, DECLARED = "recomputed", "bounded", "required", "checked", "declared"


def tally(found: Sequence[Any]) -> Dict[str, int]:
    """How many figures are worth what."""
    return {worth: sum(one.worth == worth for one in found) for worth in WORTHS}

"""Words that come from outside, so that they can be looked at: nothing in them is obeyed by a terminal, a page or an eye."""

from __future__ import annotations

# Bidirectional overrides and controls could make a name read as another one; they are shown, not obeyed. A surrogate, which
# stands for a byte of a file's name that is no UTF-8, could not be written at all.
_SHOWN = {
    code: f"\\u{code:04x}"
    for code in (*range(0x20), *range(0x7F, 0xA0), 0x061C, *range(0x200B, 0x2010), *range(0x2028, 0x202F),
                 *range(0x2060, 0x2070), *range(0xD800, 0xE000), 0xFEFF, *range(0xFFF9, 0xFFFC))
    if code not in (0x09, 0x0A)
}  # fmt: skip


def visible(value: str) -> str:
    """Text in which nothing is obeyed that cannot be seen."""
    return value.translate(_SHOWN)

"""The plan of every comparison: how many requests, in which order, of how many workers.

The constants are those of the protocol (package format, section 4); they are fixed here and are never read from a
package.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Union

Number = Union[int, Decimal]

CONCURRENCY = 8
MAIN_PER_ARM = 24
REPETITIONS = 3
ORDER = ("A", "B", "B", "A", "A", "B")
WORKERS = 2
NATIVE_WARM_PER_WORKER = 1
RR_WARM = 16
RR_WARM_PER_WORKER = 8
NATIVE_WARM_PER_ARM = WORKERS * NATIVE_WARM_PER_WORKER
WARM_PER_ARM = NATIVE_WARM_PER_ARM + RR_WARM
PER_ARM = WARM_PER_ARM + MAIN_PER_ARM
MAIN_TOTAL = 2 * REPETITIONS * MAIN_PER_ARM
WARM_TOTAL = 2 * REPETITIONS * WARM_PER_ARM
PLANNED = MAIN_TOTAL + WARM_TOTAL

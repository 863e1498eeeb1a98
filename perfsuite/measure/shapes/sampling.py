"""What a sample of an operation is: several launches in a row, and the fastest of them.

What disturbs a launch only slows it, and the first one after another operation finds its operands out of the caches. An
operation whose edges take a slow path does so at each launch, so that the fastest shows it; and it is steadier than
the mean of the faster half and the median. The fastest lies lower the more launches there are, so all samples that are
compared have equally many: those of one request by themselves, and those of two processes where whoever compares them
says how many.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from perfsuite.measure.shapes.meter import BoundOperation

#: What the launches of a sample should take together, waiting included, of the fastest operation that is compared.
LEAST_SAMPLE_NS = 500_000
FEWEST_LAUNCHES = 3
MOST_LAUNCHES = 8
#: What a sample may take on average over the operations that are compared, unless it has a single launch.
MEAN_SAMPLE_NS = 6_000_000


def launches_of_a_sample(launch_ns: Sequence[int]) -> int:
    """Return how many launches a sample of each operation has, of those whose launches take so long, waiting included.

    Enough for the fastest, unless all together would take too long.
    """
    wanted = max(FEWEST_LAUNCHES, math.ceil(LEAST_SAMPLE_NS / min(launch_ns)))
    mean_ns = sum(launch_ns) / len(launch_ns)
    return max(1, min(wanted, MOST_LAUNCHES, int(MEAN_SAMPLE_NS / mean_ns)))


def sample_ns(operation: BoundOperation, n_launches: int) -> int:
    """Launch an operation several times in a row and return the shortest time."""
    return min(operation.run_ns() for _ in range(n_launches))

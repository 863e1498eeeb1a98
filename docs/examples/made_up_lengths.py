"""Prints made-up lengths of prompts, one a line: as many as a data set has, but drawn by chance from a fixed seed.

    python docs/examples/made_up_lengths.py arc-easy > arc-easy.txt

They are log-normal, as lengths of texts about are, those of hellaswag with a heavy tail. The sizes are those that
lm-Meter names; the lengths are nobody's.
"""

from __future__ import annotations

import random
import sys

#: By name: prompts, their median in tokens, the spread of the logarithm, and the share of the heavy tail.
SETS = {
    "arc-easy": (2380, 30, 0.45, 0.0),
    "arc-challenge": (1120, 32, 0.45, 0.0),
    "gsm8k": (1320, 55, 0.45, 0.0),
    "hellaswag": (10_000, 82, 0.6, 0.05),
}
_TAIL_LEAST, _TAIL_INDEX, _MOST = 60, 1.8, 4000


def made_up_lengths(name: str) -> list[int]:
    """Return the lengths of one set; the same in every run."""
    n_prompts, median, spread, tail_share = SETS[name]
    draw = random.Random(f"perfsuite {name}")
    return [
        min(_MOST, max(1, round(_length(draw, median, spread, tail=draw.random() < tail_share))))
        for _ in range(n_prompts)
    ]


def _length(draw: random.Random, median: float, spread: float, *, tail: bool) -> float:
    if tail:
        return _TAIL_LEAST * draw.paretovariate(_TAIL_INDEX)
    return median * draw.lognormvariate(0.0, spread)


if __name__ == "__main__":
    if len(sys.argv) != 2 or sys.argv[1] not in SETS:
        sys.exit(f"usage: made_up_lengths.py {'|'.join(SETS)}")
    print(*made_up_lengths(sys.argv[1]), sep="\n")

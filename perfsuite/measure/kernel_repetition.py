"""How often a kernel of the suite's own is launched, whoever drives it."""

from __future__ import annotations

#: One kernel is repeated for no longer than this, once it has `MIN_REPETITIONS`; two in turns for twice as long.
BUDGET_NS = 150_000_000
MIN_REPETITIONS = 5
#: Launches after the verified one and before the timed ones.
WARM_UP_LAUNCHES = 2
#: Launches that say how long a kernel takes, after as many that warm it up.
N_PILOT = 10

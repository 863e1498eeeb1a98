"""How often a kernel of the suite's own is launched, whoever drives it: in rounds, each of which has every kernel."""

from __future__ import annotations

import random

#: A process of one round launches each kernel so often at least, one of several each side of it in each round.
MIN_REPETITIONS, MIN_TURNS = 5, 2
#: Rounds that are taken whatever they cost.
MIN_ROUNDS = 6
#: Launches after the verified one, of which the last says how long a kernel takes.
WARM_UP_LAUNCHES = 2
#: Launches that say how long a duplicated kernel takes, after as many that warm it up.
N_PILOT = 10


def least_launches(n_rounds: int) -> int:
    """Return how often a round launches each side of a kernel at least."""
    return MIN_REPETITIONS if n_rounds == 1 else MIN_TURNS


def launches_within(share_ns: float, launch_ns: int, *, least: int, most: int, n_sides: int) -> int:
    """Return how often a round launches each side of a kernel: for its share of the time, so that short ones have most.

    Of two sides each is first as often as the other.
    """
    n_launches = min(max(int(share_ns / max(1, launch_ns)), least), most)
    return n_launches - n_launches % n_sides


def drawn_leaders(seed: int, *, n_rounds: int, n_kernels: int) -> tuple[tuple[int, ...], ...]:
    """Draw which side of each kernel is first, round by round; of two rounds each side leads one."""
    order = random.Random(seed)
    leaders: list[tuple[int, ...]] = []
    while len(leaders) < n_rounds:
        first = tuple(order.randrange(2) for _ in range(n_kernels))
        leaders += (first, tuple(1 - each for each in first))
    return tuple(leaders[:n_rounds])

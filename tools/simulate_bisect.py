"""Searches simulated builds for planted changes: the table 'Bisecting' of docs/results.md.

    python tools/simulate_bisect.py
    python tools/simulate_bisect.py --runs=50 --only=none

64 builds, 200 searches a row. A pair's noise is Student's t of four degrees of freedom unless a row says otherwise. All
is drawn by seeds, so a second run gives the same figures; the whole takes about six minutes.
"""

from __future__ import annotations

import argparse
import math
import random
import sys
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from perfsuite.verdict.change_search import ChangeSearch, Searched

_N_BUILDS = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """What is planted, at places that are drawn, and how noisy it is."""

    name: str
    ratios: tuple[float, ...]
    noise: float = 0.015
    tail: float = 4.0
    #: How far builds are apart that are the same.
    layout: float = 0.0


ROWS = (
    Row(name="one change of 3 %", ratios=(0.03,)),
    Row(name="one of -3 %", ratios=(-0.03,)),
    Row(name="one of 3 %, noise 0.8 % and Gaussian", ratios=(0.03,), noise=0.008, tail=100.0),
    Row(name="one of 3 %, noise 3 %", ratios=(0.03,), noise=0.03),
    Row(name="one of 3 %, builds that differ by 0.2 % all the same", ratios=(0.03,), layout=0.002),
    Row(name="two of 3 %", ratios=(0.03, 0.03)),
    Row(name="6 % and -3 %", ratios=(0.06, -0.03)),
    Row(name="three of 3 %", ratios=(0.03, 0.03, 0.03)),
    Row(name="none", ratios=()),
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table, a row as soon as it is known."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--only", default="", help="rows whose name holds this text")
    options = parser.parse_args(arguments)
    print("| planted | right | pairs, median | 90 % |\n|---|---|---|---|")
    for row in (each for each in ROWS if options.only in each.name):
        n_right, n_pairs = 0, []
        for seed in range(options.runs):
            places = random.Random(seed).sample(range(1, _N_BUILDS), len(row.ratios))
            found = searched(row, places, seed)
            at = [(point.before, point.after) for point in found.points]
            n_right += at == sorted((place - 1, place) for place in places)
            n_pairs.append(found.n_pairs)
        median, most = np.percentile(n_pairs, (50, 90))
        print(f"| {row.name} | {n_right} of {options.runs} | {median:.0f} | {most:.0f} |", flush=True)
    return 0


def searched(row: Row, places: Sequence[int], seed: int) -> Searched:
    """Search once."""
    chance = np.random.default_rng(seed)
    levels = row.layout * chance.standard_normal(_N_BUILDS)
    for place, ratio in zip(places, row.ratios, strict=True):
        levels[place:] += math.log1p(ratio)

    def take(old: int, new: int, n_pairs: int) -> list[float]:
        noise = row.noise * chance.standard_t(row.tail, n_pairs)
        ratios: list[float] = np.exp(levels[new] - levels[old] + noise).tolist()
        return ratios

    return ChangeSearch(n_builds=_N_BUILDS, take=take).run()


if __name__ == "__main__":
    sys.exit(main())

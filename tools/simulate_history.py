"""Simulates nightly histories: what share of changes is found in time, and how often one is reported where none is.

Each night of a history is judged as it would have been: from the nights up to then. Noise is that of fresh processes
on a shared machine, or wider; a night is the median of ten of them.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from perfsuite.verdict.steps import Step, find_steps

Logs = NDArray[np.float64]

N_NIGHTS, N_REPLICATES = 60, 10
#: A change is found in time when it is told on one of so many nights, at a place no further off than a few.
_WITHIN_NIGHTS, _NEAR_NIGHTS = 7, 3
_USUAL_NS = 5e6


def prefill_nights(chance: np.random.Generator) -> Logs:
    """Draw nights of a short prefill: a narrow core, and a quarter of the processes up to much slower."""
    return _medians(chance, core=0.020, slow_share=0.25, slow=0.16)


def decode_nights(chance: np.random.Generator) -> Logs:
    """Draw nights of decode steps: a tenth of the processes is slower."""
    return _medians(chance, core=0.023, slow_share=0.10, slow=0.12)


def normal_nights(spread: float) -> Callable[[np.random.Generator], Logs]:
    """Return what draws nights that differ by so much whatever is measured in each."""
    return lambda chance: chance.normal(0.0, spread, N_NIGHTS)


def wandering_nights(chance: np.random.Generator) -> Logs:
    """Draw nights of a machine that is in another state for days: 3 % in all, each night 0.8 of the one before."""
    steps, logs = chance.normal(0.0, 0.03 * math.sqrt(1.0 - 0.8**2), N_NIGHTS), np.zeros(N_NIGHTS)
    for night in range(1, N_NIGHTS):
        logs[night] = 0.8 * logs[night - 1] + steps[night]
    return logs + decode_nights(chance)


NOISES: dict[str, Callable[[np.random.Generator], Logs]] = {
    "decode, as measured": decode_nights,
    "prefill, as measured": prefill_nights,
    "2 % between nights": normal_nights(0.02),
    "3 % between nights": normal_nights(0.03),
    "12 % between nights": normal_nights(0.12),
    "wandering by 3 % over days": wandering_nights,
}


def step_up(logs: Logs, night: int) -> Logs:
    """Make all nights from one on 5 % slower."""
    return logs + math.log(1.05) * (np.arange(N_NIGHTS) >= night)


def reverted(logs: Logs, night: int) -> Logs:
    """Make ten nights 5 % slower."""
    return step_up(logs, night) - math.log(1.05) * (np.arange(N_NIGHTS) >= night + 10)


def drifting(logs: Logs) -> Logs:
    """Let the times grow by 5 % over all nights."""
    return logs + math.log(1.05) * np.arange(N_NIGHTS) / N_NIGHTS


def with_outliers(logs: Logs, chance: np.random.Generator) -> Logs:
    """Make one night of twenty 30 % slower."""
    return logs + math.log(1.3) * (chance.random(N_NIGHTS) < 0.05)


@dataclass(frozen=True, slots=True)
class Share:
    """So many of so many."""

    count: int
    total: int

    def plain(self) -> dict[str, Any]:
        """Return the share with Wilson's interval at 95 %, as JSON-able values."""
        z, share = 1.96, self.count / self.total
        scale = 1.0 + z**2 / self.total
        centre = (share + z**2 / (2 * self.total)) / scale
        half = z / scale * math.sqrt(share * (1.0 - share) / self.total + z**2 / (4 * self.total**2))
        bounds = [round(max(centre - half, 0.0), 4), round(min(centre + half, 1.0), 4)]
        return {"share_ratio": round(share, 4), "interval": bounds, "n": self.total}


def told_steps(logs: Logs, first_night: int, last_night: int) -> Iterator[Step]:
    """Yield what is reported on each of the nights, from the nights up to then."""
    times_ns = (_USUAL_NS * np.exp(logs)).tolist()
    for night in range(first_night, last_night):
        yield from find_steps(times_ns[: night + 1])


def is_alarmed(logs: Logs) -> bool:
    """Say whether any night tells any change."""
    return any(True for _ in told_steps(logs, 0, N_NIGHTS))


def is_found(logs: Logs, night: int, *, is_slower: bool = True) -> bool:
    """Say whether a change at a night is reported in time, at about its place, in its direction."""
    told = told_steps(logs, night, min(night + _WITHIN_NIGHTS, N_NIGHTS))
    return any(
        abs(step.index - night) <= _NEAR_NIGHTS and (step.change.estimate_ratio > 1.0) == is_slower for step in told
    )


def simulate(noise: Callable[[np.random.Generator], Logs], n_histories: int, seed: int) -> dict[str, Any]:
    """Simulate histories of one noise, each without a change and with each kind of one."""
    chance = np.random.default_rng(seed)
    counts = dict.fromkeys(("false_alarms", "outliers", "found_5_percent", "reverted_found", "end_found", "drift"), 0)
    for _ in range(n_histories):
        logs, night = noise(chance), int(chance.integers(14, N_NIGHTS - _WITHIN_NIGHTS))
        middle = min(night, N_NIGHTS - 10 - _WITHIN_NIGHTS)
        counts["false_alarms"] += is_alarmed(logs)
        counts["outliers"] += is_alarmed(with_outliers(logs, chance))
        counts["found_5_percent"] += is_found(step_up(logs, night), night)
        counts["reverted_found"] += is_found(reverted(logs, middle), middle)
        counts["end_found"] += is_found(reverted(logs, middle), middle + 10, is_slower=False)
        counts["drift"] += is_alarmed(drifting(logs))
    return {name: Share(count, n_histories).plain() for name, count in counts.items()}


def _medians(chance: np.random.Generator, *, core: float, slow_share: float, slow: float) -> Logs:
    size = (N_NIGHTS, N_REPLICATES)
    is_slow = chance.random(size) < slow_share
    return np.asarray(np.median(chance.normal(0.0, core, size) + is_slow * chance.exponential(slow, size), axis=1))


def main() -> None:
    """Simulate every kind of noise, and print JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--histories", type=int, default=1000, metavar="N", help="of each noise; default 1000")
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="default 1; the design was chosen with 5")
    parser.add_argument("--cases", type=int, default=500, metavar="N", help="that alarms are told for; default 500")
    options = parser.parse_args()
    told = {name: simulate(noise, options.histories, options.seed) for name, noise in NOISES.items()}
    for each in told.values():
        rate = each["false_alarms"]["share_ratio"]
        each["false_alarms_a_night"] = round(rate * options.cases / N_NIGHTS, 3)
    print(json.dumps({"n_cases": options.cases, "n_nights": N_NIGHTS, "noises": told}, indent=1))


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Simulates whole runs of pairs and judges them by the suite's own rule: false alarms, power, what stays open.

    .venv/bin/python tools/simulate_verdicts.py --runs=1000
    .venv/bin/python tools/simulate_verdicts.py --runs=400 --pairs=6 --change=prefill=0.2

A run has the 53 cases of a small model: three questions, their parts correlated with them. Noise of a pair: `normal`;
`t4` (Student's t of 4 degrees, scale shared by the pair); `busy` (t4, and a quarter of the time in episodes of 4 pairs
with 4 times the noise); `layout` (besides, a third of the cases at two levels, up to 4 deviations apart, drawn for each
process); `all` (these together); `ar2`, `ar4` (pairs correlated by 0.2, 0.4). A pair of a question has the
deviation that is asked for, levels apart.
"""

from __future__ import annotations

import argparse
import math
from collections import Counter

import numpy as np

from perfsuite.records.outcome import Outcome
from perfsuite.verdict.pairs import Pairs, Suite, compare_in_looks

NOISES = ("normal", "t4", "busy", "layout", "all", "ar2", "ar4")
PHASES = ("end_to_end", "prefill", "decode")
QUESTIONS = tuple(f"phase/m/s/{phase}" for phase in PHASES)
PARTS = tuple(f"operator/m/s/{phase}/{role}" for phase in PHASES[1:] for role in range(25))
SUITE = Suite(questions=frozenset(QUESTIONS), whole_of={part: f"phase/m/s/{part.split('/')[3]}" for part in PARTS})
MARGINS = {**dict.fromkeys(QUESTIONS, 0.02), **dict.fromkeys(PARTS, 0.05)}
OLD_NS = 10**9
#: The deviation of pairs of which a share lies in an episode with 4 times the noise: each of 4 pairs may begin one.
BUSY_DEVIATION = math.sqrt(1.0 + 15.0 * (1.0 - (12.0 / 13.0) ** 4))


def noise(kind: str, n_pairs: int, deviation: float, generator: np.random.Generator) -> np.ndarray:
    """Return the noise of each pair and case, of log ratios."""
    n_cases = len(MARGINS)
    scale = np.ones((n_pairs, 1))
    if kind in ("t4", "busy", "all"):
        scale = np.sqrt(2.0 / generator.chisquare(4, (n_pairs, 1)))
    if kind in ("busy", "all"):
        begins = generator.random(n_pairs) < 1.0 / 13.0
        scale *= np.where(np.convolve(begins, np.ones(4))[:n_pairs, None] > 0, 4.0, 1.0) / BUSY_DEVIATION
    shared, own = generator.standard_normal((n_pairs, 1)), generator.standard_normal((n_pairs, n_cases))
    found = scale * (math.sqrt(0.5) * shared + math.sqrt(0.5) * own)
    if kind.startswith("ar"):
        correlation = int(kind[2:]) / 10.0
        for at in range(1, n_pairs):
            found[at] = correlation * found[at - 1] + math.sqrt(1.0 - correlation**2) * found[at]
    if kind in ("layout", "all"):
        apart = np.where(generator.random(n_cases) < 1 / 3, generator.uniform(0.0, 4.0, n_cases), 0.0)
        levels = generator.integers(0, 2, (n_pairs, n_cases)) - generator.integers(0, 2, (n_pairs, n_cases))
        found = found + apart * levels
    return found * np.where(np.arange(n_cases) < len(QUESTIONS), deviation, 1.5 * deviation)


def judged(kind: str, options: argparse.Namespace, generator: np.random.Generator) -> dict[str, Outcome]:
    """Simulate one run of at most so many pairs, and half as many more where it would end suspect."""
    n_most = options.pairs + options.pairs // 2
    logs = noise(kind, n_most, options.deviation, generator)
    for change in options.change:
        end, _, ratio = change.partition("=")
        for at, case_id in enumerate(MARGINS):
            if case_id.endswith(end):
                logs[:, at] += math.log1p(float(ratio))
    new_ns = np.rint(OLD_NS * np.exp(logs)).astype(np.int64).T.tolist()

    def collect(n_pairs: int, is_extra: bool) -> Pairs:
        n_taken = min(n_pairs, n_most if is_extra else options.pairs)
        return {name: ([OLD_NS] * n_taken, new[:n_taken]) for name, new in zip(MARGINS, new_ns, strict=True)}

    found = compare_in_looks(collect, MARGINS, SUITE, n_affordable=lambda: options.pairs)
    return {case_id: verdict.outcome for case_id, verdict in found.items()}


def main() -> None:
    """Print a line for each noise."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=1000, metavar="N", help="runs of each noise (default 1000)")
    parser.add_argument("--pairs", type=int, default=22, metavar="N", help="pairs that the budget allows (default 22)")
    parser.add_argument("--deviation", type=float, default=0.015, metavar="RATIO", help="of a question (default 0.015)")
    parser.add_argument(
        "--change", action="append", default=[], metavar="CASE=RATIO", help="slow the cases that end so"
    )
    parser.add_argument("--noise", choices=NOISES, action="append", help="only this one")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    changed = [case_id for case_id in MARGINS if any(case_id.endswith(each.split("=")[0]) for each in options.change)]
    for kind in options.noise or NOISES:
        generator = np.random.default_rng(options.seed)
        runs = [judged(kind, options, generator) for _ in range(options.runs)]
        false = sum(any(run[each] is Outcome.REGRESSED for each in run if each not in changed) for run in runs)
        suspect = sum(Outcome.SUSPECT in run.values() and Outcome.REGRESSED not in run.values() for run in runs)
        still_open = Counter(
            "question" if each in QUESTIONS else "part"
            for run in runs
            for each, outcome in run.items()
            if outcome in (Outcome.INCONCLUSIVE, Outcome.SUSPECT)
        )
        told = ", ".join(
            f"{each}: found {sum(run[each] is Outcome.REGRESSED for run in runs) / len(runs):.1%}, passed "
            f"{sum(run[each] is Outcome.PASS for run in runs) / len(runs):.1%}"
            for each in changed
        )
        print(
            f"{kind}: false alarms in {false} of {len(runs)} runs, suspect in {suspect}; open: questions "
            f"{still_open['question'] / len(runs) / len(QUESTIONS):.1%}, parts "
            f"{still_open['part'] / len(runs) / len(PARTS):.1%}; {told}".rstrip("; "),
            flush=True,
        )


if __name__ == "__main__":
    main()

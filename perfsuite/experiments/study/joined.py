"""A study's accuracies and latencies side by side: trade-offs, frontiers with their knees, and H_Q.

H_Q, the Harmonic Quantization score, is what a quantisation gains in speed and keeps in accuracy, as one number.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from statistics import mean

from perfsuite.experiments.study.harness_scores import HarnessScore, TaskScores
from perfsuite.experiments.study.plan_file import StudyPlan, StudyRun, TokenLatency


class TokenKind(Enum):
    """Which latency stands against accuracy."""

    INPUT = "input"
    OUTPUT = "output"


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyPoint:
    """One run in one task."""

    task: str
    run: StudyRun
    score: HarnessScore
    #: The reference has 1.
    normalised_accuracy: float
    latency: TokenLatency

    def latency_s(self, kind: TokenKind) -> float:
        return self.latency.prefill_s_per_token if kind is TokenKind.INPUT else self.latency.decode_s_per_token


@dataclass(frozen=True, slots=True, kw_only=True)
class Frontier:
    """What nothing else beats in both latency and accuracy, of one task: over all suites or over one."""

    task: str
    #: None is all of them.
    suite: str | None
    kind: TokenKind
    #: The fastest first.
    members: tuple[StudyPoint, ...]
    #: None where no member stands above the line between the ends.
    knee: StudyPoint | None


@dataclass(frozen=True, slots=True, kw_only=True)
class QuantizationRow:
    """What one quantisation of a model does to one task."""

    task: str
    run: StudyRun
    original: StudyRun
    #: M_a, M_prefill and M_decode; None where the original is no better than guessing, and there is nothing to keep.
    ratios: tuple[float, float, float] | None

    @property
    def score(self) -> float | None:
        """H_Q; None where either is no better than guessing, which the harmonic mean has no value for."""
        return None if self.ratios is None or self.ratios[0] <= 0.0 else harmonic_quantization(self.ratios)


@dataclass(frozen=True, slots=True, kw_only=True)
class Study:
    """Everything that a study concludes."""

    plan: StudyPlan
    points: tuple[StudyPoint, ...]
    frontiers: tuple[Frontier, ...]
    quantizations: tuple[QuantizationRow, ...]

    def frontier(self, task: str, kind: TokenKind) -> Frontier:
        """Return the frontier of a task over all suites."""
        return next(each for each in self.frontiers if (each.task, each.kind, each.suite) == (task, kind, None))

    def mean_scores(self) -> Mapping[str, float | None]:
        """Return the mean H_Q of each task; None where one of its quantisations has no H_Q."""
        found: dict[str, list[float | None]] = {}
        for row in self.quantizations:
            found.setdefault(row.task, []).append(row.score)
        known = {task: [score for score in scores if score is not None] for task, scores in found.items()}
        return {task: mean(known[task]) if len(known[task]) == len(found[task]) else None for task in found}


def join(plan: StudyPlan, scores: Sequence[TaskScores], latencies: Mapping[str, TokenLatency]) -> Study:
    """Join scores with the latencies of all runs, which are by name of the run."""
    points = tuple(
        StudyPoint(
            task=of_task.task.name,
            run=run,
            score=(score := of_task.of_runs[run.name]),
            normalised_accuracy=of_task.normalised(score.accuracy),
            latency=latencies[run.name],
        )
        for of_task in scores
        for run in plan.runs
    )
    quantizations = (row for of_task in scores for row in _quantizations(plan, of_task, latencies))
    return Study(plan=plan, points=points, frontiers=tuple(_frontiers(points)), quantizations=tuple(quantizations))


def _frontiers(points: Sequence[StudyPoint]) -> Iterator[Frontier]:
    """Yield those over all suites, then, where there are several, those of each suite."""
    suites = dict.fromkeys(point.run.suite for point in points)
    for task in dict.fromkeys(point.task for point in points):
        for suite in (None, *(suites if len(suites) > 1 else ())):
            own = {each.run.name: each for each in points if each.task == task and suite in (None, each.run.suite)}
            for kind in TokenKind:
                pairs = {name: (each.latency_s(kind), each.normalised_accuracy) for name, each in own.items()}
                names = pareto_members(pairs)
                knee = knee_of([pairs[name] for name in names])
                members = tuple(own[name] for name in names)
                yield Frontier(
                    task=task, suite=suite, kind=kind, members=members, knee=None if knee is None else members[knee]
                )


def pareto_members(found: Mapping[str, tuple[float, float]]) -> list[str]:
    """Return the names of what is not dominated, of latencies and accuracies; the fastest first.

    One dominates another where it takes no longer and is no less accurate, and is better in one of the two. Equal ones
    do not dominate each other.
    """
    pairs = set(found.values())
    best = (
        (latency, name)
        for name, (latency, accuracy) in found.items()
        if not any(other[0] <= latency and other[1] >= accuracy for other in pairs - {(latency, accuracy)})
    )
    return [name for _, name in sorted(best)]


def knee_of(members: Sequence[tuple[float, float]]) -> int | None:
    """Return which member of a frontier stands furthest above its chord, the faster of equals; None where none does.

    Latency and accuracy are each scaled to 0 at one end of the frontier and 1 at the other; the chord is y = x, and
    the height above it is y - x, which ranks as the distance from it does.

    *Source*: V. Satopää et al., Finding a "Kneedle" in a Haystack, ICDCS Workshops 2011, on the points themselves,
    without smoothing.
    """
    (first_s, least), (last_s, most) = members[0], members[-1]
    span_s, gain = last_s - first_s, most - least
    if span_s <= 0.0 or gain <= 0.0:
        return None
    heights = [(accuracy - least) / gain - (latency_s - first_s) / span_s for latency_s, accuracy in members]
    highest = max(heights)
    return heights.index(highest) if highest > 0.0 else None


def _quantizations(
    plan: StudyPlan, of_task: TaskScores, latencies: Mapping[str, TokenLatency]
) -> Iterator[QuantizationRow]:
    originals = {run.model: run for run in plan.runs if run.is_original}
    for run in plan.runs:
        original = originals.get(run.model)
        if original is not None and run is not original:
            names = original.name, run.name
            accuracies = [of_task.normalised(of_task.of_runs[name].accuracy) for name in names]
            ratios = quantization_ratios(accuracies, [latencies[name] for name in names])
            yield QuantizationRow(task=of_task.task.name, run=run, original=original, ratios=ratios)


def quantization_ratios(
    accuracies: Sequence[float], latencies: Sequence[TokenLatency]
) -> tuple[float, float, float] | None:
    """Return M_a, M_prefill and M_decode, each 1 where nothing changes, and above it where quantisation is better.

    M_a is the normalised accuracy of the quantised model over that of the original; M_prefill and M_decode are
    latencies of the original over those of the quantised model. The first of two is always the original's; None where
    that is no better than guessing. Without a chance of guessing the reference cancels out of M_a.
    """
    (original, quantized), (before, after) = accuracies, latencies
    if original <= 0.0:
        return None
    prefill = before.prefill_s_per_token / after.prefill_s_per_token
    return quantized / original, prefill, before.decode_s_per_token / after.decode_s_per_token


def harmonic_quantization(ratios: Sequence[float]) -> float:
    """Return H_Q = 3 / (1/M_a + 1/M_prefill + 1/M_decode), the harmonic mean of three ratios above 0.

    It is below three times the least of them, so that no speed makes up for accuracy that is lost.

    *Source*: lm-Meter, its Harmonic Quantization score of a task.
    """
    return len(ratios) / math.fsum(1.0 / ratio for ratio in ratios)

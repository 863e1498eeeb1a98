"""A study's accuracies and latencies side by side: trade-offs, frontiers with their knees, and H_Q."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from statistics import mean

from perfsuite.errors import PerfsuiteError
from perfsuite.experiments.study.harness_scores import HarnessScore, TaskScores
from perfsuite.experiments.study.plan_file import StudyPlan, StudyRun
from perfsuite.experiments.study.quantization_score import QuantizationRatios, quantization_ratios
from perfsuite.experiments.study.token_latency import TokenLatency


@dataclass(frozen=True, slots=True, kw_only=True)
class TradeOff:
    """One thing that is fast and accurate to some degree."""

    name: str
    latency_s: float
    accuracy: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Frontier:
    """What nothing else beats in both, the fastest first."""

    members: tuple[TradeOff, ...]
    #: None where no member stands above the line between the ends.
    knee: TradeOff | None


def pareto_frontier(found: Sequence[TradeOff]) -> Frontier:
    """Return all that are not dominated, and the knee among them.

    One dominates another where it takes no longer and is no less accurate, and is better in one of the two. Equal ones
    do not dominate each other.

    Raises PerfsuiteError: nothing is given, or a latency is not above 0.
    """
    if not found:
        raise PerfsuiteError("frontier: nothing to compare, expected at least one latency with an accuracy")
    if slow := [each for each in found if not each.latency_s > 0.0]:
        raise PerfsuiteError(f"frontier: {slow[0].name} takes {slow[0].latency_s:g} s, expected a time above 0")
    best = (each for each in found if not any(_dominates(other, each) for other in found))
    members = tuple(sorted(best, key=lambda each: (each.latency_s, each.name)))
    return Frontier(members=members, knee=_knee(members))


def _dominates(one: TradeOff, other: TradeOff) -> bool:
    no_worse = one.latency_s <= other.latency_s and one.accuracy >= other.accuracy
    return no_worse and (one.latency_s, one.accuracy) != (other.latency_s, other.accuracy)


def _knee(members: Sequence[TradeOff]) -> TradeOff | None:
    """Return the member that stands furthest above the chord of the frontier, the faster of equals.

    Latency and accuracy are each scaled to 0 at one end of the frontier and 1 at the other; the chord is y = x, and
    the height above it is y - x, which ranks as the distance from it does.

    *Source*: V. Satopää et al., Finding a "Kneedle" in a Haystack, ICDCS Workshops 2011, on the points themselves,
    without smoothing.
    """
    first, last = members[0], members[-1]
    span_s, gain = last.latency_s - first.latency_s, last.accuracy - first.accuracy
    if span_s <= 0.0 or gain <= 0.0:
        return None
    heights = [
        (each.accuracy - first.accuracy) / gain - (each.latency_s - first.latency_s) / span_s for each in members
    ]
    highest = max(heights)
    return members[heights.index(highest)] if highest > 0.0 else None


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
        """Return the seconds of an input or of an output token."""
        return self.latency.prefill_s_per_token if kind is TokenKind.INPUT else self.latency.decode_s_per_token


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskFrontier:
    """The frontier of one task, over all suites or over one."""

    task: str
    #: None is all of them.
    suite: str | None
    kind: TokenKind
    frontier: Frontier


@dataclass(frozen=True, slots=True, kw_only=True)
class QuantizationRow:
    """What one quantisation of a model does to one task."""

    task: str
    run: StudyRun
    original: StudyRun
    #: None where the original is no better than guessing, and there is nothing to keep.
    ratios: QuantizationRatios | None
    #: H_Q; None where either is no better than guessing, which the harmonic mean has no value for.
    score: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Study:
    """Everything that a study concludes."""

    plan: StudyPlan
    points: tuple[StudyPoint, ...]
    frontiers: tuple[TaskFrontier, ...]
    quantizations: tuple[QuantizationRow, ...]

    def frontier(self, task: str, kind: TokenKind, suite: str | None = None) -> Frontier:
        """Return one of the frontiers."""
        wanted = (task, kind, suite)
        return next(each.frontier for each in self.frontiers if (each.task, each.kind, each.suite) == wanted)

    def mean_scores(self) -> Mapping[str, float | None]:
        """Return the mean H_Q of each task; None where one of its quantisations has no H_Q."""
        found: dict[str, list[float | None]] = {}
        for row in self.quantizations:
            found.setdefault(row.task, []).append(row.score)
        return {task: _mean(scores) for task, scores in found.items()}


def join(plan: StudyPlan, scores: Sequence[TaskScores], latencies: Mapping[str, TokenLatency]) -> Study:
    """Join scores and latencies, which are by name of the run.

    Raises PerfsuiteError: a run has no latency.
    """
    if missing := [run.name for run in plan.runs if run.name not in latencies]:
        raise PerfsuiteError(f"study: no latency of {', '.join(missing)}; measure it, or give it in the plan")
    points = tuple(_point(run, of_task, latencies[run.name]) for of_task in scores for run in plan.runs)
    return Study(
        plan=plan,
        points=points,
        frontiers=tuple(_frontiers(points)),
        quantizations=tuple(row for of_task in scores for row in _quantizations(plan, of_task, latencies)),
    )


def _point(run: StudyRun, of_task: TaskScores, latency: TokenLatency) -> StudyPoint:
    score = of_task.of_runs[run.name]
    normalised = of_task.scale.normalised(score.accuracy)
    return StudyPoint(task=of_task.task.name, run=run, score=score, normalised_accuracy=normalised, latency=latency)


def _frontiers(points: Sequence[StudyPoint]) -> Iterator[TaskFrontier]:
    """Yield those over all suites, then, where there are several, those of each suite."""
    suites = dict.fromkeys(point.run.suite for point in points)
    for task in dict.fromkeys(point.task for point in points):
        for suite in (None, *(suites if len(suites) > 1 else ())):
            own = [point for point in points if point.task == task and suite in (None, point.run.suite)]
            for kind in TokenKind:
                trade_offs = [
                    TradeOff(name=each.run.name, latency_s=each.latency_s(kind), accuracy=each.normalised_accuracy)
                    for each in own
                ]
                yield TaskFrontier(task=task, suite=suite, kind=kind, frontier=pareto_frontier(trade_offs))


def _mean(scores: Sequence[float | None]) -> float | None:
    known = [score for score in scores if score is not None]
    return mean(known) if len(known) == len(scores) else None


def _quantizations(
    plan: StudyPlan, of_task: TaskScores, latencies: Mapping[str, TokenLatency]
) -> Iterator[QuantizationRow]:
    originals = {run.model: run for run in plan.runs if run.is_original}
    for run in plan.runs:
        original = originals.get(run.model)
        if original is None or run is original:
            continue
        ratios = _ratios(of_task, original.name, run.name, latencies)
        score = ratios.harmonic_quantization if ratios is not None and ratios.accuracy_ratio > 0.0 else None
        yield QuantizationRow(task=of_task.task.name, run=run, original=original, ratios=ratios, score=score)


def _ratios(
    of_task: TaskScores, original: str, quantized: str, latencies: Mapping[str, TokenLatency]
) -> QuantizationRatios | None:
    accuracy, before, after = of_task.of_runs[original].accuracy, latencies[original], latencies[quantized]
    if of_task.scale.normalised(accuracy) <= 0.0:
        return None
    return quantization_ratios(
        of_task.scale,
        accuracies=(accuracy, of_task.of_runs[quantized].accuracy),
        prefills_s=(before.prefill_s_per_token, after.prefill_s_per_token),
        decodes_s=(before.decode_s_per_token, after.decode_s_per_token),
    )

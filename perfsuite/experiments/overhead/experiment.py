"""``--perf-overhead``: what each recorder costs, and several together, once for all cases of overhead."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace

from perfsuite.experiments.engine_runs import run_plan
from perfsuite.experiments.overhead.measurement import (
    COST_PHASES,
    CPU_COMPARISONS,
    OPENCL_COMPARISONS,
    Comparison,
    Overhead,
    compare_recorders,
)
from perfsuite.experiments.progress import ProgressLine
from perfsuite.experiments.protocol import Experiment
from perfsuite.experiments.run_config import RunConfig
from perfsuite.measure.board.protocol import under_governor
from perfsuite.records.case import Case
from perfsuite.records.events import Phase
from perfsuite.records.outcome import Judgement, Outcome, told_judgement
from perfsuite.verdict.significance import PairedRatio
from perfsuite.workload.model_shape import check_generates

#: The kind of the cases, and the first part of their ids.
OVERHEAD = "overhead"

#: The most that a comparison may add to the time of a prefill and of a decode; the end to end has the larger of the
#: two. What the layer adds is the suite's own promise; with the runtime's profiling it is lm-Meter's worst, 2.58 % and
#: 0.99 % (section on overhead, Pixel 8 Pro, powersave).
LIMITS_RATIO: Mapping[str, tuple[float, float]] = {
    "layer": (0.005, 0.009),
    "profiling": (0.0258, 0.0099),
    "opencl": (0.0258, 0.0099),
    "opencl+live": (0.0258, 0.02),
    "live": (0.01, 0.02),
    "callback+live": (0.01, 0.03),
}


def case_name(comparison: str, phase: Phase, governor: str | None = None) -> str:
    """Return the id of a comparison in a phase, under a governor where it was set for it."""
    return f"{OVERHEAD}/{comparison}{f'@{governor}' if governor else ''}/{phase.value}"


def parts_of(case_id: str) -> tuple[str, Phase, str | None]:
    """Return the comparison, the phase and the governor that an id names."""
    _, subject, phase = case_id.split("/")
    comparison, _, governor = subject.partition("@")
    return comparison, Phase(phase), governor or None


def judge_overhead(case_id: str, ratio: PairedRatio | None, *, reason: str) -> Judgement:
    """Judge one case; without a ratio, `reason` says why there is none.

    PASS where the upper bound of the median (95 %, one-sided) meets the limit, SLOW where the lower bound is beyond it,
    INCONCLUSIVE between the two, and INVALID where nothing was measured.
    """
    if ratio is None:
        return told_judgement(case_id, OVERHEAD, Outcome.INVALID, reason)
    comparison, phase, _ = parts_of(case_id)
    prefill_ratio, decode_ratio = LIMITS_RATIO[comparison]
    limits = {Phase.PREFILL: prefill_ratio, Phase.DECODE: decode_ratio}
    limit_ratio = limits.get(phase, max(prefill_ratio, decode_ratio))
    median, lower, upper = (
        f"{(each - 1.0) * 100.0:+.2f} %" for each in (ratio.median_ratio, ratio.lower_ratio, ratio.upper_ratio)
    )
    text = f"{median} (95 % bounds {lower} to {upper}, {ratio.n_pairs} pairs), limit {limit_ratio * 100.0:+.2f} %"
    is_slow = ratio.lower_ratio > 1.0 + limit_ratio
    outcome = Outcome.SLOW if is_slow else Outcome.INCONCLUSIVE
    outcome = Outcome.PASS if ratio.upper_ratio <= 1.0 + limit_ratio else outcome
    return told_judgement(case_id, OVERHEAD, outcome, text, ratio.median_ratio)


#: Pairs of processes of each comparison.
N_PAIRS = 12
#: Tokens of a turn's generation at most: a turn that lasts longer is no nearer to the other side's.
_MOST_GEN = 24


def open_experiments(config: RunConfig, *_: object) -> tuple[Experiment, ...]:
    """Return the experiment of ``--perf-overhead``."""
    check_generates(config.workload.weights.shape, "--perf-overhead")
    return (OverheadExperiment(config=config),)


@dataclass(kw_only=True)
class OverheadExperiment(Experiment):
    """The comparisons of one run."""

    config: RunConfig
    #: What was measured, by comparison and governor.
    found: dict[tuple[str, str | None], Overhead] = field(default_factory=dict)
    kind: str = OVERHEAD

    @property
    def _governors(self) -> tuple[str | None, ...]:
        """The governors to compare under; where the board offers none, the one that is set."""
        return self.config.board.facts().settable_governors or (None,)

    @property
    def _comparisons(self) -> dict[str, Comparison]:
        return dict(CPU_COMPARISONS if self.config.opencl is None else OPENCL_COMPARISONS)

    def cases(self) -> Iterator[Case]:
        """Enumerate prefill, decode and end to end of each comparison, under each governor that may be set."""
        for governor in self._governors:
            for name in self._comparisons:
                for phase in COST_PHASES:
                    yield Case(case_id=case_name(name, phase, governor), kind=OVERHEAD, phase=phase, role=name)

    def n_steps(self, case_ids: Collection[str]) -> int:
        """Return the pairs of processes that the cases need."""
        return N_PAIRS * len(_subjects(case_ids))

    def measure(self, case_ids: Collection[str], progress: ProgressLine) -> None:
        """Compare what the given cases name, one comparison after the other."""
        plan = run_plan(self.config)
        for name, governor in _subjects(case_ids):
            told = f"overhead, {name}{f' under {governor}' if governor else ''}"
            with under_governor(self.config.board, governor):
                self.found[name, governor] = compare_recorders(
                    self._comparisons[name],
                    replace(plan, n_gen=min(plan.n_gen, _MOST_GEN)),
                    self.config.profile,
                    self.config.board,
                    opencl=self.config.opencl,
                    n_pairs=N_PAIRS,
                    announce=lambda _, told=told: progress.step(told),  # type: ignore[misc]
                )

    def judge(self, case_id: str, reason: str) -> Judgement:
        """Judge one comparison in one phase by its limit."""
        name, phase, governor = parts_of(case_id)
        overhead = self.found.get((name, governor))
        ratio = None if overhead is None else overhead.ratios.get(phase)
        return judge_overhead(case_id, ratio, reason=reason)


def _subjects(case_ids: Collection[str]) -> tuple[tuple[str, str | None], ...]:
    found = (parts_of(case_id) for case_id in case_ids)
    return tuple(dict.fromkeys((name, governor) for name, _, governor in found))

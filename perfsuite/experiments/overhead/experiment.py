"""``--perf-overhead``: what each recorder costs, and several together, once for all cases of overhead."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field, replace

from perfsuite.device.governors import governor_set, settable_governors
from perfsuite.device.lock.state import STATE_FOLDER
from perfsuite.device.work_folder import work_folder
from perfsuite.expectation.cases import Case
from perfsuite.experiments.engine_replicates import run_plan
from perfsuite.experiments.forecasts import Forecasts
from perfsuite.experiments.overhead.judgement import OVERHEAD, case_name, judge_overhead, parts_of
from perfsuite.experiments.overhead.measurement import COST_PHASES, Overhead
from perfsuite.experiments.overhead.recorder_sides import (
    CPU_COMPARISONS,
    OPENCL_COMPARISONS,
    Comparison,
    compare_recorders,
)
from perfsuite.experiments.progress import ProgressLine
from perfsuite.experiments.protocol import Experiment
from perfsuite.experiments.run_config import RunConfig
from perfsuite.measure.plan import LlamaPlan
from perfsuite.records.outcome import Judgement

#: Pairs of processes of each comparison.
N_PAIRS = 12
#: Tokens of a turn's generation at most: a turn that lasts longer is no nearer to the other side's.
_MOST_GEN = 24


def open_experiments(config: RunConfig, _: Forecasts) -> tuple[Experiment, ...]:
    """Return the experiment where ``--perf-overhead`` asks for it."""
    return (OverheadExperiment(config=config),) if config.overhead else ()


@dataclass(kw_only=True)
class OverheadExperiment(Experiment):
    """The comparisons of one run."""

    config: RunConfig
    #: The governors to compare under; without any it is the one that is set.
    governors: tuple[str | None, ...] = field(default_factory=lambda: settable_governors() or (None,))
    #: What was measured, by comparison and governor.
    found: dict[tuple[str, str | None], Overhead] = field(default_factory=dict)
    kind: str = OVERHEAD

    @property
    def _comparisons(self) -> dict[str, Comparison]:
        return dict(CPU_COMPARISONS if self.config.opencl is None else OPENCL_COMPARISONS)

    def cases(self) -> Iterator[Case]:
        """Enumerate prefill, decode and end to end of each comparison, under each governor that may be set."""
        for governor in self.governors:
            for name in self._comparisons:
                for phase in COST_PHASES:
                    yield Case(case_id=case_name(name, phase, governor), kind=OVERHEAD, phase=phase, role=name)

    def n_steps(self, case_ids: Collection[str]) -> int:
        """Return the pairs of processes that the cases need."""
        return N_PAIRS * len(_subjects(case_ids))

    def measure(self, case_ids: Collection[str], progress: ProgressLine) -> None:
        """Compare what the given cases name, one comparison after the other."""
        for name, governor in _subjects(case_ids):
            told = f"overhead, {name}{f' under {governor}' if governor else ''}"
            kept = self.config.cache_dir / STATE_FOLDER
            governed = governor_set(governor, folder=kept)
            with work_folder() as folder, governed:
                self.found[name, governor] = compare_recorders(
                    self._comparisons[name],
                    self._plan(),
                    self.config.profile,
                    opencl=self.config.opencl,
                    folder=folder,
                    n_pairs=N_PAIRS,
                    announce=lambda _, told=told: progress.step(told),  # type: ignore[misc]
                )

    def judge(self, case_id: str, reason: str) -> Judgement:
        """Judge one comparison in one phase by its limit."""
        name, phase, governor = parts_of(case_id)
        overhead = self.found.get((name, governor))
        ratio = None if overhead is None else overhead.ratios.get(phase)
        return judge_overhead(case_id, ratio, reason=reason)

    def _plan(self) -> LlamaPlan:
        plan = run_plan(self.config)
        return replace(plan, n_gen=min(plan.n_gen, _MOST_GEN))


def _subjects(case_ids: Collection[str]) -> tuple[tuple[str, str | None], ...]:
    found = (parts_of(case_id) for case_id in case_ids)
    return tuple(dict.fromkeys((name, governor) for name, _, governor in found))

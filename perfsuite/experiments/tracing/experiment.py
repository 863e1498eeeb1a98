"""``--perf-trace``: one run is traced, and what the trace shows is judged: balance, growth, linearity, reuse."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING

from perfsuite.device.profile import Profile
from perfsuite.expectation.trace_cases import EXPERT_REUSE, TRACE, trace_cases
from perfsuite.experiments.engine_runs import run_plan
from perfsuite.experiments.forecasts import Forecasts
from perfsuite.experiments.progress import ProgressLine
from perfsuite.experiments.protocol import Experiment
from perfsuite.experiments.recorder_traces import traced_by_engine
from perfsuite.experiments.run_config import RunConfig
from perfsuite.measure.board.protocol import Board
from perfsuite.measure.plan import LlamaPlan
from perfsuite.measure.schedule import Rule, tried
from perfsuite.records.case import Case
from perfsuite.records.ceilings import Ceilings
from perfsuite.records.engine_trace import EngineTrace
from perfsuite.records.outcome import Judgement
from perfsuite.records.trace_file import write_trace
from perfsuite.trace.recording import TRACE_NAME

if TYPE_CHECKING:
    from perfsuite.experiments.tracing.judgement import TraceFindings

#: What the recorders of the suite's own are asked for: operators on each thread, and what routers choose.
_OPERATORS, _EXPERTS = "preload", "experts"


def open_experiments(config: RunConfig, forecasts: Forecasts, *_: object) -> tuple[Experiment, ...]:
    """Return the experiment of ``--perf-trace``."""
    return (TraceExperiment(config=config, ceilings=lambda: forecasts.ceilings),)


@dataclass(kw_only=True)
class TraceExperiment(Experiment):
    """The traces of one run."""

    config: RunConfig
    #: What the device can do, once it was measured.
    ceilings: Callable[[], Ceilings | None]
    #: What was found, by recorder.
    found: dict[str, TraceFindings] = field(default_factory=dict)
    kind: str = TRACE

    def cases(self) -> Iterator[Case]:
        yield from trace_cases(self.config.workload, self.config.n_threads)

    def n_steps(self, case_ids: Collection[str]) -> int:
        return len(self._recorders(case_ids))

    def measure(self, case_ids: Collection[str], progress: ProgressLine) -> None:
        from perfsuite.experiments.tracing.judgement import trace_findings  # brings NumPy, as what it needs

        config = self.config
        plan = replace(run_plan(config), n_repetitions=1)
        for recorder in self._recorders(case_ids):
            progress.step(f"trace, recorder {recorder}")
            folder = config.run_dir / f"trace-{recorder}"
            trace, complaint = undisturbed_trace(plan, recorder, config.profile, config.board, folder=folder)
            found = trace_findings(trace, config.workload, n_threads=config.n_threads, complaint=complaint)
            self.found[recorder] = found

    def judge(self, case_id: str, reason: str) -> Judgement:
        from perfsuite.experiments.tracing.judgement import judge_trace

        (recorder,) = self._recorders((case_id,))
        return judge_trace(
            self.found.get(recorder),
            case_id,
            ceilings=self.ceilings(),
            tolerance_ratio=self.config.profile.forecast_tolerance_ratio.get("operator"),
            reason=reason,
        )

    def _recorders(self, case_ids: Collection[str]) -> tuple[str, ...]:
        """Return who records what the cases need; choices of experts cut graphs, and have a process of their own."""
        wanted = (_EXPERTS if case_id.endswith(f"/{EXPERT_REUSE}") else _OPERATORS for case_id in case_ids)
        return tuple(dict.fromkeys(wanted))


def undisturbed_trace(
    plan: LlamaPlan, recorder: str, profile: Profile, board: Board, *, folder: Path
) -> tuple[EngineTrace, str | None]:
    """Run a plan under one of the engine's own recorders, and keep its trace in a folder.

    Returned are the trace and, where every try had competition, what competed with the last one.

    Raises `MeasurementError`: a worker failed, or the trace cannot be written.
    """
    take = partial(traced_by_engine, plan, recorder, board)
    traced, complaint = tried(take, attrgetter("payload"), Rule(profile=profile))
    folder.mkdir(parents=True, exist_ok=True)
    write_trace(folder / TRACE_NAME, traced.trace, overwrites=True)
    return traced.trace, complaint

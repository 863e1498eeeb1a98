"""An experiment that another package brings: does one thread more make the decode faster?

pip install ./docs/examples/thread_scaling
pytest --device=host --perf-experiment=thread-scaling -k thread-scaling
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace
from statistics import median

from perfsuite.errors import MeasurementError
from perfsuite.experiments.engine_runs import run_plan
from perfsuite.experiments.forecasts import Forecasts
from perfsuite.experiments.progress import ProgressLine
from perfsuite.experiments.protocol import Experiment
from perfsuite.experiments.replicates import collect_replicates
from perfsuite.experiments.run_config import RunConfig
from perfsuite.measure.schedule import waiting_complaint
from perfsuite.records.case import Case
from perfsuite.records.events import EngineRecord, Phase
from perfsuite.records.outcome import Judgement, Outcome, told_judgement
from perfsuite.trace.samples import replicate_samples


class ThreadScaling(Experiment):
    """A case for each number of threads from two on: the decode is faster than with one thread fewer."""

    kind = "thread-scaling"

    def __init__(self, config: RunConfig) -> None:
        self._config = config
        self._decode_ns: dict[int, float] = {}

    def cases(self) -> Iterator[Case]:
        """Enumerate the numbers of threads up to the run's own."""
        prefix = f"{self.kind}/{self._config.workload.prefix}"
        yield from (Case(case_id=f"{prefix}/{n}", kind=self.kind) for n in range(2, self._config.n_threads + 1))

    def n_steps(self, case_ids: Collection[str]) -> int:
        """Return the replicates of all numbers of threads."""
        return self._config.n_replicates * (max(map(n_threads_of, case_ids)) if case_ids else 0)

    def measure(self, case_ids: Collection[str], progress: ProgressLine) -> None:
        """Run the workload with each number of threads; the board says what competed with it."""
        for n_threads in range(1, max(map(n_threads_of, case_ids)) + 1):
            self._decode_ns[n_threads] = self._measured_ns(n_threads, progress)

    def _measured_ns(self, n_threads: int, progress: ProgressLine) -> float:
        config, plan = self._config, replace(run_plan(self._config), n_threads=n_threads)
        name = f"{n_threads} threads"
        found = collect_replicates(
            config, lambda: config.board.run(plan), waiting_complaint, name, progress, group=self.kind
        )
        if found.problems:
            raise MeasurementError(f"{name}: {'; '.join(found.problems)}")
        records = (EngineRecord.from_plain(payload["engine"]) for payload in found.payloads)
        return median(replicate_samples(record).phase_ns[Phase.DECODE] for record in records)

    def judge(self, case_id: str, reason: str) -> Judgement:
        """Judge one number of threads by the medians of its replicates and of those with one thread fewer."""
        n_threads = n_threads_of(case_id)
        if not {n_threads, n_threads - 1} <= self._decode_ns.keys():
            return told_judgement(case_id, self.kind, Outcome.INVALID, reason)
        ratio = self._decode_ns[n_threads] / self._decode_ns[n_threads - 1]
        text = f"{ratio:.2f} of the time that {n_threads - 1} threads take"
        return told_judgement(case_id, self.kind, Outcome.PASS if ratio < 1.0 else Outcome.SLOW, text, ratio)


def n_threads_of(case_id: str) -> int:
    """Return the number of threads that a case's id ends with."""
    return int(case_id.rpartition("/")[2])


def open_experiments(config: RunConfig, _: Forecasts) -> tuple[Experiment, ...]:
    """Return the experiment; the entry point names this function."""
    return (ThreadScaling(config),)

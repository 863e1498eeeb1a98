"""The suite's own OpenCL kernels against kernel duplication: each alone, and again followed by n of itself.

Two readings of the events are compared with the ground truth G, for G is one launch more in all that it costs, its
dispatch included. On Intel's CPU runtime END - START is 1 to 4 µs below G for all 30 kernels of the catalogue but one,
and as much for one of 40 µs as for one of 1 ms: the dispatch of the next launch, which begins after END. Time between
ENDs (occupied) has part of that in it and lay closer to G for every kernel: it is the latency in the sense of
duplication. Judged is END - START nevertheless, for it is what the suite shows as a kernel's time, and the worse of
the two.

The base run is one launch after the device was idle, so that it may find its caches cold; that is why the launches of
the duplicated run are compared with G, and not the base run's own.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

import pyopencl as cl

from perfsuite.measure.kernel_programs import opencl_errors
from perfsuite.measure.kernel_references import TOLERANCES
from perfsuite.measure.kernel_repetition import N_PILOT
from perfsuite.measure.opencl import BoundLaunch, KernelBench
from perfsuite.measure.opencl_platform import choose_device
from perfsuite.records.duplication import DuplicationRound, KernelDuplication, duplicates_wanted, duplicates_within
from perfsuite.workload.kernel_catalog import KernelCase


def duplicate_kernels(
    cases: Sequence[KernelCase], *, platform: str | None, n_rounds: int, budget_ns: int, seed: int, log_dir: Path
) -> tuple[KernelDuplication, ...]:
    """Measure kernels alone and duplicated, in this process, in rounds that go through all of them.

    `platform` is as `choose_device` takes it. `budget_ns` is for the rounds of one kernel: fewer duplicates are run
    where it would be passed. The seed draws the inputs of each case independently of the others.

    Raises `OpenClError` where there is no such platform, a kernel does not build, or the device refuses a launch.
    """
    bench = KernelBench(choose_device(platform), log_dir=log_dir)
    open_cases = []
    for case in cases:
        with opencl_errors(case.case_id):
            open_cases.append(_OpenCase.begin(bench, case, n_rounds=n_rounds, budget_ns=budget_ns, seed=seed))
    for _ in range(n_rounds):
        for each in open_cases:
            with opencl_errors(each.case.case_id):
                each.run_round(bench.queue)
    return tuple(each.finished() for each in open_cases)


@dataclass
class _OpenCase:
    """A kernel between its rounds."""

    case: KernelCase
    launch: BoundLaunch
    n_duplicates: int
    n_wanted: int
    rounds: list[DuplicationRound] = field(default_factory=list)

    @classmethod
    def begin(cls, bench: KernelBench, case: KernelCase, *, n_rounds: int, budget_ns: int, seed: int) -> _OpenCase:
        launch = bench.bound(case, seed=seed)
        for _ in range(2):  # the first is the warm-up
            _, events = _timed(bench.queue, launch, N_PILOT)
        kernel_ns = median(event.profile.end - event.profile.start for event in events)
        return cls(
            case=case,
            launch=launch,
            n_duplicates=duplicates_within(kernel_ns, n_rounds, budget_ns),
            n_wanted=duplicates_wanted(kernel_ns),
        )

    def run_round(self, queue: cl.CommandQueue) -> None:
        self.launch.bind()
        _timed(queue, self.launch, 2)  # brings the buffers back into the caches, which other kernels have used since
        base_ns, base_events = _timed(queue, self.launch, 1)
        duplicated_ns, events = _timed(queue, self.launch, 1 + self.n_duplicates)
        starts_ends = [(event.profile.start, event.profile.end) for event in events]
        self.rounds.append(
            DuplicationRound(
                base_ns=base_ns,
                duplicated_ns=duplicated_ns,
                base_execution_ns=base_events[0].profile.end - base_events[0].profile.start,
                duplicates_execution_ns=sum(end - start for start, end in starts_ends),
                duplicates_occupied_ns=starts_ends[-1][1] - starts_ends[0][1],
            )
        )

    def finished(self) -> KernelDuplication:
        """Check that the output is what one launch computes: duplicates read the same inputs and write the same."""
        with opencl_errors(self.case.case_id):
            self.launch.bind()
            deviation = self.launch.verify()
        is_right = deviation <= TOLERANCES[self.case.type]
        return KernelDuplication(
            name=self.case.case_id,
            n_duplicates=self.n_duplicates,
            n_wanted=self.n_wanted,
            rounds=tuple(self.rounds),
            problem=None if is_right else f"the kernel computes wrongly: error norm {deviation:.2g}",
        )


def _timed(queue: cl.CommandQueue, launch: BoundLaunch, n_launches: int) -> tuple[int, list[cl.Event]]:
    """Enqueue launches between two finishes; return the host time from before the first enqueue, and their events."""
    queue.finish()
    began_ns = time.monotonic_ns()
    events = [launch.enqueue() for _ in range(n_launches)]
    queue.finish()
    return time.monotonic_ns() - began_ns, events

"""What your own tests give: kernels of pyopencl to time, and calls to count, each judged by what was committed."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from types import ModuleType
from typing import TYPE_CHECKING

from perfsuite.errors import MeasurementError, NativeBuildError
from perfsuite.experiments.kernel_samples import kernel_samples, tick_of
from perfsuite.experiments.run_config import RunConfig
from perfsuite.measure.counted_call import count_call, counted_call, python_build
from perfsuite.measure.counting import build_counting_tool
from perfsuite.records.case import COUNTED, OPENCL
from perfsuite.records.counts import OwnCounts, own_counts_path, read_own_counts, write_counts
from perfsuite.records.fingerprint import Fingerprint
from perfsuite.records.outcome import CaseSamples, Judgement, Outcome, told_judgement
from perfsuite.verdict.counted import call_changes, judge_call

if TYPE_CHECKING:
    import pyopencl as cl

#: What is a file's name as well, in folders or not.
_NAME = re.compile(r"\w[\w.=+-]*(/\w[\w.=+-]*)*")


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelLaunch:
    """A kernel of pyopencl with its arguments, and a queue that profiles."""

    queue: cl.CommandQueue
    kernel: cl.Kernel
    global_size: tuple[int, ...]
    local_size: tuple[int, ...] | None
    arguments: tuple[object, ...]

    def samples(self, name: str, n_rounds: int, check: Callable[[], object] | None) -> tuple[CaseSamples, Fingerprint]:
        """Time it; return also what counts beside the machine.

        Raises MeasurementError: a launch fails.
        """
        from perfsuite.measure.opencl_calls import OpenClCall  # brings pyopencl, which the caller has

        call = OpenClCall(
            case_id=f"{OPENCL}/{name}",
            queue=self.queue,
            kernel=self.kernel,
            global_size=self.global_size,
            local_size=self.local_size,
            arguments=self.arguments,
        )
        records = call.rounds(n_rounds, check)
        problems = () if records else ("the kernel computes wrongly: its check says so",)
        return kernel_samples(call.case_id, records, problems, tick_of(records)), call.fingerprint


@dataclass(kw_only=True)
class OwnCalls:
    """What the tests of a run have counted."""

    config: RunConfig
    counted: dict[str, OwnCounts] = field(default_factory=dict)

    def judge(
        self,
        name: str,
        function: Callable[..., object],
        arguments: tuple[object, ...],
        module: ModuleType,
        *,
        limit_s: float,
        margin_ratio: float | None,
    ) -> Judgement:
        """Count a call in two processes, and judge it; `module` and `margin_ratio` are its test's own.

        Raises MeasurementError: the name is none for a file, or the call cannot be made, or fails.
        """
        call = counted_call(function, arguments, module)
        if not _NAME.fullmatch(name):
            raise MeasurementError(f"{name!r} is no name of a case; expected one such as function/sort-10k")
        case_id = f"{COUNTED}/{name}"
        path = own_counts_path(self.config.baseline_dir, case_id)
        before = read_own_counts(path) if self.config.baseline_mode == "compare" else None
        try:
            tool = build_counting_tool(self.config.cache_dir)
        except NativeBuildError as error:
            return told_judgement(case_id, COUNTED, Outcome.INVALID, str(error))
        python = python_build()
        now, again = (
            OwnCounts(case_id=case_id, python=python, counts=count_call(call, tool, limit_s=limit_s)) for _ in range(2)
        )
        unlike = [each for each in call_changes(now, again, margin_ratio) if each.differs]
        if unlike:
            told = f"{unlike[0].now:,} {unlike[0].metric} in one process and {unlike[0].before:,} in another"
            todo = "keep time, random numbers and threads out of the function"
            return told_judgement(case_id, COUNTED, Outcome.INCONCLUSIVE, f"{told}; {todo}")
        self.counted[case_id] = now
        if before is None:
            told = f"{now.counts.instructions:,} instructions; there is nothing in {path} to judge it by"
            return told_judgement(case_id, COUNTED, Outcome.NEW, told)
        return judge_call(before, now, margin_ratio)

    def keep(self) -> bool:
        for case_id, each in self.counted.items():
            write_counts(own_counts_path(self.config.baseline_dir, case_id), each)
        return bool(self.counted)

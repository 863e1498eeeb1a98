"""Counts calls of functions that tests give, and judges each by what was committed."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from perfsuite.errors import MeasurementError, NativeBuildError
from perfsuite.experiments.run_config import RunConfig
from perfsuite.measure.counted_call import CountedCall, count_call, python_build
from perfsuite.measure.counting import build_counting_tool
from perfsuite.records.case import COUNTED
from perfsuite.records.counts import OwnCounts, own_counts_path, read_own_counts, write_counts
from perfsuite.records.outcome import Judgement, Outcome, told_judgement
from perfsuite.verdict.counted import call_changes, judge_call

#: What is a file's name as well, in folders or not.
_NAME = re.compile(r"\w[\w.=+-]*(/\w[\w.=+-]*)*")


@dataclass(kw_only=True)
class OwnCalls:
    """What the tests of a run have counted."""

    config: RunConfig
    counted: dict[str, OwnCounts] = field(default_factory=dict)

    def judge(self, name: str, call: CountedCall, *, limit_s: float, margin_ratio: float | None) -> Judgement:
        """Count a call in two processes, and judge it; `margin_ratio` is its test's own.

        Raises MeasurementError: the name is none for a file, or the call fails.
        """
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

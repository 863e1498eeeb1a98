"""Measures the suite's kernels beside the sources that made their baseline, launch by launch."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from perfsuite.device.fingerprint import Fingerprint
from perfsuite.device.work_folder import work_folder
from perfsuite.errors import LinkError
from perfsuite.expectation.cases import Case
from perfsuite.expectation.forecast import Expectation
from perfsuite.experiments.engine_pairs import PAIRS_RESOLUTION_RATIO, PairedGroup, device_notes, paired_judgements
from perfsuite.experiments.kernel_replicates import (
    description,
    kernel_environment,
    kernel_fingerprint,
    kernel_plan,
    kernel_samples,
)
from perfsuite.experiments.machine_states import StateLog
from perfsuite.experiments.pairs import CONFIRM_RATIO
from perfsuite.experiments.progress import ProgressLine
from perfsuite.experiments.replicates import BreakOff, GroupSamples, busy_text, how_broken_off, peak_rss_bytes
from perfsuite.experiments.run_config import RunConfig
from perfsuite.experiments.stored import EngineSession
from perfsuite.measure.contention import Contention
from perfsuite.measure.engine_store import kernels_folder
from perfsuite.measure.kernel_record import KernelRecord
from perfsuite.measure.plan import KernelPlan
from perfsuite.measure.undisturbed import others_complaint
from perfsuite.records.observation import Observation
from perfsuite.trace.samples import midmean
from perfsuite.verdict.judge_pairs import NO_EXPECTATION
from perfsuite.verdict.sequential import STANDARD_DESIGN, PairedVerdict, Pairs, compare_sequentially

#: Finds what can be measured again beside the kernels, by their fingerprint.
AtHand = Callable[[Fingerprint], tuple[EngineSession, Path] | None]


def measure_kernels_beside(
    config: RunConfig,
    cases: Sequence[Case],
    device: Mapping[str, Any],
    margins: Mapping[str, float],
    at_hand: AtHand,
    progress: ProgressLine,
    expect: Callable[[Case], Expectation],
    *,
    screen_s: float,
) -> PairedGroup | None:
    """Compare the suite's kernels with the sources that made their baseline, launch by launch; None without these.

    Looking for changes takes `screen_s` at most beyond the first look; confirming them may take longer.

    Raises MeasurementError: a kernel of either side does not build or run.
    """
    fingerprint = kernel_fingerprint(config, device)
    found = at_hand(fingerprint)
    if found is None:
        return None
    (session, differences), folder = found
    with _built_folder(config) as built_dir:
        plan = replace(kernel_plan(config, cases), old_kernels_dir=str(kernels_folder(folder)), built_dir=built_dir)
        run = _KernelPairs(config=config, plan=plan, environment=kernel_environment(config), progress=progress)
        verdicts = run.compare(margins, screen_s=screen_s)
    on_processor = device["type"] == "cpu"
    judgements = paired_judgements(
        cases, run.sides(), verdicts, margins, run.problems, expect if on_processor else lambda case: NO_EXPECTATION
    )
    group = GroupSamples(
        samples={},
        fingerprint=fingerprint,
        peak_rss_bytes=peak_rss_bytes(run.payloads),
        n_discarded=len(run.complaints),
        on_processor=on_processor,
        description=f"{description(device)}, beside the sources of {session.recorded_at[:16]}",
        notes=device_notes(config, session, judgements, differences),
        observation=Observation(states=tuple(run.states.states)),
        broken_off_by=run.broken_off_by,
    )
    return PairedGroup(group=group, judgements=judgements)


@contextmanager
def _built_folder(config: RunConfig) -> Iterator[str | None]:
    """Give a folder of this run for what its processes build, which takes longer than measuring; none on a board."""
    if config.board.is_local:
        with work_folder() as folder:
            yield str(folder)
    else:
        yield None


@dataclass(kw_only=True)
class _KernelPairs:
    """Processes in which old and new kernels take turns; each gives a pair of samples of every case."""

    config: RunConfig
    plan: KernelPlan
    environment: Mapping[str, str]
    progress: ProgressLine
    payloads: list[dict[str, Any]] = field(default_factory=list)
    #: Why processes were left out.
    complaints: list[str] = field(default_factory=list)
    broken_off_by: BreakOff | None = None
    states: StateLog = field(init=False)
    _began_s: float = field(default_factory=time.monotonic)

    def __post_init__(self) -> None:
        """Begin the log of the machine."""
        self.states = StateLog(group="kernels", board=self.config.board, began_s=self.config.began_s)

    def compare(self, margins: Mapping[str, float], *, screen_s: float) -> Mapping[str, PairedVerdict]:
        """Take pairs until the cases are decided; nothing is where it is broken off."""
        try:
            return compare_sequentially(
                self.extend,
                margins,
                may_go_on=partial(self.may_extend, limit_s=screen_s),
                may_confirm=partial(self.may_extend, limit_s=self.config.budget_s * CONFIRM_RATIO),
                resolution_limit_ratio=min(PAIRS_RESOLUTION_RATIO, self.config.most_resolution_ratio),
            )
        except (KeyboardInterrupt, LinkError) as error:
            self.broken_off_by = error
            return {}

    def extend(self, n_pairs: int) -> Pairs:
        """Run until there are `n_pairs`, or as many had competition."""
        self.progress.extend_to(n_pairs)
        while len(self.payloads) < n_pairs and len(self.complaints) < n_pairs:
            self.progress.step("pairs of OpenCL kernels")
            self.states.before()
            n_taken = len(self.payloads) + len(self.complaints)
            payload = self.config.board.run(replace(self.plan, leader=n_taken % 2), extra_environment=self.environment)
            complaint = others_complaint(Contention.from_plain(payload["contention"]), self.config.profile)
            self.states.after(payload, is_valid=complaint is None)
            if complaint is None:
                self.payloads.append(payload)
            else:
                self.complaints.append(complaint)
        return self.sides()

    def may_extend(self, n_pairs: int, *, limit_s: float) -> bool:
        """Whether so many pairs take no longer, at the pace so far."""
        return (time.monotonic() - self._began_s) / max(1, len(self.payloads)) * n_pairs <= limit_s

    def sides(self) -> dict[str, tuple[tuple[int, ...], tuple[int, ...]]]:
        """Return old and new samples, ns, of each case that every process measured on both sides."""
        old, new = self._samples("old_kernels"), self._samples("kernels")
        n_pairs = len(self.payloads)
        return {
            case_id: (old[case_id], new[case_id])
            for case_id in self.plan.case_ids
            if n_pairs and len(old.get(case_id, ())) == len(new.get(case_id, ())) == n_pairs
        }

    def problems(self, case: Case) -> tuple[str, ...]:
        """Say why nothing can be said of a case: it computes wrongly, or there were too few pairs."""
        records = [each for payload in self.payloads for each in _records(payload, "kernels")]
        wrong = kernel_samples(case, [each for each in records if each.case_id == case.case_id], ()).problems
        if self.broken_off_by is not None:
            return (*wrong, f"{how_broken_off(self.broken_off_by)} after {len(self.payloads)} pairs; run again")
        if len(self.payloads) >= STANDARD_DESIGN.screen_looks[0]:
            return wrong
        return (*wrong, busy_text(self.complaints, len(self.payloads), "pairs"))

    def _samples(self, side: str) -> dict[str, tuple[int, ...]]:
        by_case: dict[str, list[int]] = defaultdict(list)
        for payload in self.payloads:
            for record in _records(payload, side):
                if record.durations_ns:
                    by_case[record.case_id].append(round(midmean(record.durations_ns)))
        return {case_id: tuple(samples) for case_id, samples in by_case.items()}


def _records(payload: Mapping[str, Any], side: str) -> list[KernelRecord]:
    return [KernelRecord.from_plain(plain) for plain in payload[side]]

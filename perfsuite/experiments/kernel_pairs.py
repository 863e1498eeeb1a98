"""Measures the suite's kernels beside the sources that made their baseline, launch by launch."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from itertools import cycle
from operator import itemgetter
from pathlib import Path
from typing import Any

from perfsuite.device.fingerprint import Fingerprint
from perfsuite.device.work_folder import work_folder
from perfsuite.expectation.cases import Case
from perfsuite.expectation.forecast import Expectation
from perfsuite.experiments.engine_pairs import (
    PAIRS_RESOLUTION_RATIO,
    PairedGroup,
    device_notes,
    paired_judgements,
    too_few,
)
from perfsuite.experiments.kernel_replicates import (
    description,
    kernel_environment,
    kernel_fingerprint,
    kernel_plan,
    kernel_samples,
    tick_of,
)
from perfsuite.experiments.progress import ProgressLine
from perfsuite.experiments.replicates import GroupSamples, GroupWitness, peak_rss_bytes
from perfsuite.experiments.run_config import RunConfig
from perfsuite.experiments.stored import EngineSession
from perfsuite.measure.engine_store import kernels_folder
from perfsuite.measure.kernel_record import KernelRecord
from perfsuite.measure.plan import KernelPlan
from perfsuite.measure.schedule import CONFIRM_RATIO, Payload, Rule, Series, others_complaint, replicates_of
from perfsuite.records.observation import Observation
from perfsuite.trace.samples import midmean
from perfsuite.verdict.judge_pairs import NO_EXPECTATION
from perfsuite.verdict.sequential import PairedVerdict, Pairs, compare_sequentially

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
    witness = GroupWitness(
        config=config, group="kernels", what="pairs of OpenCL kernels", progress=progress, awaits_quiet=False
    )
    verdicts: Mapping[str, PairedVerdict] = {}
    with _built_folder(config) as built_dir:
        plan = replace(kernel_plan(config, cases), old_kernels_dir=str(kernels_folder(folder)), built_dir=built_dir)
        drawn = (replace(plan, leader=leader) for leader in cycle((0, 1)))
        series = Series(
            take=replicates_of(config.board, partial(next, drawn), extra_environment=kernel_environment(config)),
            rules=(Rule(profile=config.profile, complain=others_complaint),),
            keep=itemgetter(0),
            witness=witness,
        )

        def collect(n_pairs: int) -> Pairs:
            progress.extend_to(n_pairs)
            series.extend(n_pairs)
            return _sides(plan, series.valid)

        with series.broken_off(by_failure=False):
            verdicts = compare_sequentially(
                collect,
                margins,
                may_go_on=partial(series.may_extend, limit_s=screen_s),
                may_confirm=partial(series.may_extend, limit_s=config.budget_s * CONFIRM_RATIO),
                resolution_limit_ratio=min(PAIRS_RESOLUTION_RATIO, config.most_resolution_ratio),
            )
    on_processor = device["type"] == "cpu"
    problems = too_few(series, verdicts)
    judgements = paired_judgements(
        cases,
        _sides(plan, series.valid),
        verdicts,
        margins,
        lambda case: (*_wrong(case, series.valid), *problems),
        expect if on_processor else lambda case: NO_EXPECTATION,
    )
    group = GroupSamples(
        samples={},
        fingerprint=fingerprint,
        peak_rss_bytes=peak_rss_bytes(series.valid),
        n_discarded=len(series.complaints),
        on_processor=on_processor,
        description=f"{description(device)}, beside the sources of {session.recorded_at[:16]}",
        notes=device_notes(config, session, judgements, differences),
        observation=Observation(states=tuple(witness.states)),
        broken_off_by=series.broken_off_by,
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


def _sides(plan: KernelPlan, payloads: Sequence[Payload]) -> dict[str, tuple[tuple[int, ...], tuple[int, ...]]]:
    """Return old and new samples, ns, of each case that every process measured on both sides."""
    old, new = _samples(payloads, "old_kernels"), _samples(payloads, "kernels")
    return {
        case_id: (old[case_id], new[case_id])
        for case_id in plan.case_ids
        if payloads and len(old.get(case_id, ())) == len(new.get(case_id, ())) == len(payloads)
    }


def _samples(payloads: Sequence[Payload], side: str) -> dict[str, tuple[int, ...]]:
    by_case: dict[str, list[int]] = defaultdict(list)
    for record in _records(payloads, side):
        if record.durations_ns:
            by_case[record.case_id].append(round(midmean(record.durations_ns)))
    return {case_id: tuple(samples) for case_id, samples in by_case.items()}


def _wrong(case: Case, payloads: Sequence[Payload]) -> tuple[str, ...]:
    """Say why nothing can be said of a case: it computes wrongly, or too few of its times can be right."""
    new = _records(payloads, "kernels")
    sides = (new, [each for each in _records(payloads, "old_kernels") if each.is_correct])
    own = ([each for each in side if each.case_id == case.case_id] for side in sides)
    return tuple(dict.fromkeys(text for each in own for text in kernel_samples(case, each, (), tick_of(new)).problems))


def _records(payloads: Sequence[Payload], side: str) -> list[KernelRecord]:
    return [KernelRecord.from_plain(plain) for payload in payloads for plain in payload[side]]

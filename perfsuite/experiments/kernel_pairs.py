"""Measures the suite's kernels beside the sources that made their baseline, launch by launch.

All pairs come of one process, a round each, and are judged by one look. What a process draws once, as where the code of
a program lies, is no part of their scatter.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from operator import itemgetter
from pathlib import Path
from typing import Any

from perfsuite.experiments.engine_pairs import PairedGroup, device_notes, paired_judgements
from perfsuite.experiments.kernel_replicates import (
    KERNELS_BUDGET_S,
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
from perfsuite.measure.schedule import Payload, Rule, Series, others_complaint, replicates_of
from perfsuite.records.case import Case, Expectation
from perfsuite.records.fingerprint import Fingerprint
from perfsuite.records.observation import Observation
from perfsuite.trace.samples import midmean
from perfsuite.verdict.judge_pairs import NO_EXPECTATION
from perfsuite.verdict.pairs import Suite, verdicts_at

#: Pairs of a process at most; one that had competition is followed by one more, where there is time.
_ROUNDS, _MOST_PROCESSES = 16, 2

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
) -> PairedGroup | None:
    """Compare the suite's kernels with the sources that made their baseline, launch by launch; None without these.

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
    plan = replace(
        kernel_plan(config, cases),
        n_rounds=_ROUNDS,
        old_kernels_dir=str(kernels_folder(folder)),
        order_seed=random.randrange(1 << 32),
    )
    series = Series(
        take=replicates_of(config.board, lambda: plan, extra_environment=kernel_environment(config)),
        rules=(Rule(profile=config.profile, complain=others_complaint),),
        keep=itemgetter(0),
        witness=witness,
        budget_s=KERNELS_BUDGET_S,
    )
    with series.broken_off(by_failure=False):
        series.extend(1, most_left_out=_MOST_PROCESSES)
    sides = _sides(series.valid)
    verdicts = verdicts_at(sides, margins, Suite(), share_ratio=1.0)
    on_processor = device["type"] == "cpu"
    problems = tuple(filter(None, [series.shortage("processes", is_enough=bool(series.valid))]))
    judgements = paired_judgements(
        cases,
        sides,
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


def _sides(payloads: Sequence[Payload]) -> dict[str, tuple[tuple[int, ...], tuple[int, ...]]]:
    """Return old and new samples, ns, of each case: a round is a pair, where both of its sides have times."""
    found = {}
    for old, new in zip(_records(payloads, "old_kernels"), _records(payloads, "kernels"), strict=True):
        rounds = [each for each in zip(old.rounds_ns, new.rounds_ns, strict=True) if all(each)]
        old_ns, new_ns = (tuple(round(midmean(each[side])) for each in rounds) for side in (0, 1))
        found[old.case_id] = old_ns, new_ns
    return found


def _wrong(case: Case, payloads: Sequence[Payload]) -> tuple[str, ...]:
    """Say why nothing can be said of a case: it computes wrongly, or too few of its times can be right."""
    new = _records(payloads, "kernels")
    sides = (new, [each for each in _records(payloads, "old_kernels") if each.is_correct])
    own = ([each for each in side if each.case_id == case.case_id] for side in sides)
    return tuple(
        dict.fromkeys(text for each in own for text in kernel_samples(case.case_id, each, (), tick_of(new)).problems)
    )


def _records(payloads: Sequence[Payload], side: str) -> list[KernelRecord]:
    return [KernelRecord.from_plain(plain) for payload in payloads for plain in payload[side]]

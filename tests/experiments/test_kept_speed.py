"""What a group's sentinels say of its cases."""

from __future__ import annotations

import pytest

from perfsuite.experiments.kept_speed import pairs_speed_notes, with_speed_problems
from perfsuite.experiments.pairs import Pair
from perfsuite.experiments.replicates import GroupSamples
from perfsuite.records.events import Phase
from perfsuite.records.outcome import CaseSamples
from perfsuite.trace.samples import ReplicateSamples

LEVEL = (100,) * 6
SLOWED = (100,) * 3 + (150,) * 3

DECODE, PREFILL = "phase/m/s/decode", "phase/m/s/prefill"
OPERATOR, KERNEL = "operator/m/s/decode/ffn_up", "kernel/gemv/1x1/f32"


def group(*, compute: tuple[int, ...], memory: tuple[int, ...], samples: tuple[int, ...] = SLOWED) -> GroupSamples:
    return GroupSamples(
        samples={
            case_id: CaseSamples(case_id=case_id, samples_ns=samples, problems=("a problem of its own",))
            for case_id in (DECODE, PREFILL, OPERATOR, KERNEL)
        },
        fingerprint={},
        sentinels_ns={"memory": memory, "compute": compute},
    )


def found(judged: GroupSamples) -> dict[str, list[str]]:
    """The first word of each problem that was added, by case."""
    return {case_id: [each.split()[0] for each in one.problems[1:]] for case_id, one in judged.samples.items()}


def test_what_slows_down_counts_for_what_waits_for_it() -> None:
    """Memory for a decode step and its operators, where they were slower, too; no prefill, and no kernel."""
    judged = with_speed_problems(group(compute=SLOWED, memory=LEVEL))
    assert found(judged) == {each: ["throttled:"] for each in (DECODE, PREFILL, OPERATOR, KERNEL)}
    assert judged.samples[DECODE].problems[0] == "a problem of its own"
    judged = with_speed_problems(group(compute=LEVEL, memory=SLOWED))
    assert found(judged) == {DECODE: ["memory"], PREFILL: [], OPERATOR: ["memory"], KERNEL: []}
    unmoved = with_speed_problems(group(compute=LEVEL, memory=SLOWED, samples=LEVEL))
    assert set(map(tuple, found(unmoved).values())) == {()}


def test_what_cannot_be_told_is_said() -> None:
    """Three replicates are too few, and the ceilings at both ends give a note alone."""
    few = group(compute=(100,) * 3, memory=(100,) * 3, samples=(100,) * 3)
    assert with_speed_problems(few).notes == ("3 replicates are too few to tell whether the device kept its speed",)
    assert with_speed_problems(few, (100, 101)).notes == ()
    assert with_speed_problems(group(compute=LEVEL, memory=LEVEL)).notes == ()
    (note,) = with_speed_problems(few, (100, 120)).notes
    assert "20 % longer after the run" in note
    assert found(with_speed_problems(few, (100, 120)))[PREFILL] == []
    plain = GroupSamples(samples={}, fingerprint={})
    assert with_speed_problems(plain, (100, 200)) is plain


@pytest.mark.parametrize(("phase", "is_told"), [(Phase.PREFILL, True), (Phase.DECODE, True), (Phase.COPY, False)])
def test_pairs_are_told_by_the_old_side(phase: Phase, is_told: bool) -> None:
    """By its prefill, or its decode where it has none; the new side, which may be slower, does not count."""

    def pair(old_ns: int, new_ns: int) -> Pair:
        old, new = (ReplicateSamples(phase_ns={phase: each}, operator_ns={}, rest_ns={}) for each in (old_ns, new_ns))
        return Pair(old=old, new=new, old_repetitions_ns={}, new_repetitions_ns={})

    dropped = [pair(100, 100)] * 4 + [pair(125, 125)] * 4
    assert len(pairs_speed_notes(dropped)) == is_told
    assert pairs_speed_notes([pair(100, 100)] * 4 + [pair(100, 150)] * 4) == ()
    assert pairs_speed_notes([]) == ()

"""What a group's sentinels say of its cases."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest

from perfsuite.experiments.kept_speed import (
    memory_complaint,
    pairs_note,
    slowdown_ratio,
    speed_note,
    throttling_complaint,
    with_speed_problems,
)
from perfsuite.experiments.pairs import EnginePair, Pair, pairs_speed_notes
from perfsuite.experiments.samples import GroupSamples
from perfsuite.records.events import Phase
from perfsuite.records.outcome import CaseSamples
from perfsuite.trace.samples import ReplicateSamples

#: The last seven replicates of a run on a shared machine in which a neighbour came: the memory sentinel, and what two
#: cases took, ns. Stored by a run of smollm2-135m-q8_0 with its scenario siso, 2026-11-22.
_MEMORY_RUN = (376579, 358758, 366992, 370592, 929497, 888285, 925065)
_DECODE_RUN = (5141858, 5330119, 5324642, 5376819, 4982301, 4837330, 4904806)
_COPY_RUN = (4596, 3966, 4547, 4687, 10406, 10055, 10505)


def drawn(chance: random.Random, n: int, *, scatter: float, disturbed: float = 0.0, slow: float = 1.0) -> list[int]:
    """Return the times of replicates that scatter, some of them disturbed, the last half of them slower."""
    levels = [1.0] * (n - n // 2) + [slow] * (n // 2)
    return [
        round(1e6 * level * max(0.05, chance.gauss(1.0, scatter)) * disturbance)
        for level in levels
        for disturbance in (chance.uniform(1.2, 20.0) if chance.random() < disturbed else 1.0,)
    ]


@pytest.mark.parametrize("n_replicates", [6, 7, 8, 10, 30])
@pytest.mark.parametrize("scatter", [0.02, 0.1, 0.3])
@pytest.mark.parametrize("disturbed", [0.0, 0.03, 0.2])
def test_an_unchanged_run_is_hardly_ever_called_throttled(n_replicates: int, scatter: float, disturbed: float) -> None:
    """Eight of a thousand simulated runs are called so at most, where two are expected."""
    chance = random.Random(n_replicates)
    runs = (drawn(chance, n_replicates, scatter=scatter, disturbed=disturbed) for _ in range(1000))
    assert sum(slowdown_ratio(each) is not None for each in runs) <= 8


@pytest.mark.parametrize(
    ("n_replicates", "scatter", "least"),
    [(6, 0.02, 0.72), (8, 0.02, 0.95), (30, 0.02, 0.82), (6, 0.05, 0.1), (8, 0.05, 0.44), (10, 0.05, 0.8)],
)
def test_a_run_that_slows_down_is_found(n_replicates: int, scatter: float, least: float) -> None:
    """A clock that drops by a fifth half way is found about as often as the simulation says."""
    chance = random.Random(n_replicates)
    runs = (drawn(chance, n_replicates, scatter=scatter, disturbed=0.03, slow=1.25) for _ in range(500))
    assert sum(slowdown_ratio(each) is not None for each in runs) >= least * 500


@pytest.mark.parametrize(
    ("times_ns", "is_slow"),
    [
        ([100, 101, 100, 124, 125, 123], True),
        ([100, 101, 100, 108, 109, 109], False),
        ([100, 101, 124, 125, 123], False),
        ([100, 200], False),
        ([], False),
        ([100, 99, 101, 100, 2265, 100], False),
        ([150, 151, 149, 100, 101, 100], False),
        ([100, 101, 99, 100, 140, 141, 139, 140, 100, 101, 99, 100], False),
        ([0] * 6, False),
    ],
    ids=["slow", "within 10 %", "five", "two", "none", "one disturbed", "warm-up", "in the middle", "no time at all"],
)
def test_what_is_slower_in_the_last_half(times_ns: Sequence[int], is_slow: bool) -> None:
    """Two or five values say nothing, nor a single one; a slow beginning is no throttling."""
    assert (slowdown_ratio(times_ns) is not None) is is_slow


def test_the_reason_is_one_line() -> None:
    assert throttling_complaint({"compute": [100, 101, 100, 99, 100, 124, 125, 123, 122, 123]}) == (
        "throttled: the fixed work took 23 % longer in the last 5 of 10 replicates (limit 10 %, chance below 1 in 400);"
        " cool the device or lower its clock, and run again"
    )
    assert throttling_complaint({"memory": [100] * 5 + [200] * 5}) is None


def test_a_neighbour_counts_for_the_cases_that_he_slows_down() -> None:
    """Memory took 2.4 times as long for three replicates: a copy doubled, a decode step did not."""
    sentinels = {"memory": _MEMORY_RUN}
    assert memory_complaint(sentinels, _DECODE_RUN) is None
    assert memory_complaint(sentinels, _COPY_RUN) == (
        "memory slowed down: in the last 3 of 7 replicates the fixed reading took 148 % longer, and this case 132 % "
        "(limit 10 %, chance below 1 in 400); cool the device or free the machine, and run again"
    )
    assert memory_complaint({"memory": [100] * 7}, _COPY_RUN) is None
    assert memory_complaint(sentinels, _COPY_RUN[1:]) is None


@pytest.mark.parametrize(("n_replicates", "scatter", "least"), [(6, 0.02, 0.93), (10, 0.02, 0.98), (20, 0.1, 0.85)])
def test_memory_that_slows_down_is_found(n_replicates: int, scatter: float, least: float) -> None:
    """Where the sentinel and the case both take 30 % longer from the middle on, about as often as was simulated."""
    chance = random.Random(n_replicates)
    runs = [[drawn(chance, n_replicates, scatter=scatter, slow=1.3) for _ in range(2)] for _ in range(300)]
    assert sum(memory_complaint({"memory": memory}, case) is not None for memory, case in runs) >= least * 300


def test_the_ceilings_before_and_after_are_told_and_judge_nothing() -> None:
    assert speed_note([100] * 3, (100, 109)) is None
    assert speed_note([100] * 6, None) is None
    assert speed_note([100] * 3, None) == "3 replicates are too few to tell whether the device kept its speed"
    assert speed_note([100] * 6, (100, 125)) == (
        "at the ceilings the fixed work took 25 % longer after the run than before it: perhaps it was throttled"
    )


def test_pairs_that_slow_down_are_told() -> None:
    assert pairs_note([100, 101] * 10) is None
    assert pairs_note([100] * 10 + [125] * 10) == (
        "the old side took 25 % longer in the last 10 of 20 pairs (limit 10 %, chance below 1 in 400): throttled or "
        "shared; ratios hold, as both sides take turns, and times are of two speeds"
    )


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

    def pair(old_ns: int, new_ns: int) -> EnginePair:
        old, new = (ReplicateSamples(phase_ns={phase: each}, operator_ns={}, rest_ns={}) for each in (old_ns, new_ns))
        return Pair(old=old, new=new, old_repetitions_ns={}, new_repetitions_ns={})

    dropped = [pair(100, 100)] * 4 + [pair(125, 125)] * 4
    assert len(pairs_speed_notes(dropped)) == is_told
    assert pairs_speed_notes([pair(100, 100)] * 4 + [pair(100, 150)] * 4) == ()
    assert pairs_speed_notes([]) == ()

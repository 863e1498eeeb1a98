"""The failing cases on the terminal."""

from __future__ import annotations

from dataclasses import replace

from perfsuite.records.attribution import NO_ATTRIBUTION, Attribution
from perfsuite.records.outcome import Outcome
from perfsuite.report.failures import MAX_LINES, failure_lines

from ..synthetic_judgements import case, tree


def test_a_slower_phase_is_a_tree() -> None:
    """Below the phase stand its carriers and what they leave over; the carriers need no line of their own."""
    ids = ["operator/a/b/decode/ffn_swiglu", "operator/a/b/decode/attn_out"]
    found = [
        *(case(case_id, Outcome.REGRESSED) for case_id in ids),
        case("phase/a/b/decode", Outcome.REGRESSED, reason="because"),
    ]
    lines = failure_lines(found, Attribution(phases=(tree(*ids, losses_ns=(310_000, 50_000)),)))
    assert lines == (
        "  regressed: phase/a/b/decode: because",
        "      ffn_swiglu +310 µs (78 %), attn_out +50.0 µs (12 %), unexplained +40.0 µs (10 %)",
    )


def test_carriers_that_are_not_sure_are_told_as_such() -> None:
    """Operators that only together make up most of a loss are not told as if they had regressed."""
    phases = (tree("operator/a/b/decode/ffn_up", losses_ns=(300_000,), is_significant=False),)
    slow = case("phase/a/b/decode", Outcome.REGRESSED)
    *_, line = failure_lines([slow], Attribution(phases=phases))
    assert line == "      none changed for sure by itself; mostly ffn_up +300 µs (75 %), unexplained +100 µs (25 %)"


def test_a_loss_without_carriers_is_told_as_such() -> None:
    """Where a loss is spread over many, that is what the tree says."""
    slow = case("phase/a/b/decode", Outcome.REGRESSED)
    *_, line = failure_lines([slow], Attribution(phases=(tree(losses_ns=()),)))
    assert line == "      no few operators carry it, unexplained +400 µs (100 %)"


def test_a_phase_that_lost_nothing_has_no_share() -> None:
    """Where the ends of a phase are equal, what is unexplained is told without a share of it."""
    same = replace(tree(losses_ns=()), lost_ns=0, unexplained_ns=0)
    *_, line = failure_lines([case("phase/a/b/decode", Outcome.REGRESSED)], Attribution(phases=(same,)))
    assert line.startswith("      no few operators carry it, unexplained ")
    assert "%" not in line


def test_phases_come_before_the_other_failures() -> None:
    """Phases are read first, then what measures wrongly, then what lost the most time."""
    found = [
        case("operator/a/b/decode/small", Outcome.REGRESSED, measured_ns=110, change_ratio=1.1),
        case("operator/a/b/decode/large", Outcome.REGRESSED, measured_ns=1100, change_ratio=1.1),
        case("kernel/add/n8/f32", Outcome.IMPOSSIBLE),
        case("phase/a/b/decode", Outcome.SLOW),
    ]
    lines = failure_lines(found, NO_ATTRIBUTION)
    assert [line.split(":")[1].split("/")[-1] for line in lines] == ["decode", "f32", "large", "small"]


def test_no_more_failures_are_told_than_are_read() -> None:
    """After fifteen lines the others are counted."""
    found = [case(f"kernel/add/n{at}/f32", Outcome.REGRESSED) for at in range(MAX_LINES + 12)]
    lines = failure_lines(found, NO_ATTRIBUTION)
    assert len(lines) == MAX_LINES + 1
    assert lines[-1] == "  ... and 12 more, in run.json"
    assert len(failure_lines(found[:MAX_LINES], NO_ATTRIBUTION)) == MAX_LINES


def test_a_tree_is_not_cut_from_its_phase() -> None:
    """A phase whose tree has no room is counted with the others."""
    phases = [case(f"phase/a/b{at}/decode", Outcome.REGRESSED) for at in range(8)]
    trees = tuple(replace(tree(losses_ns=()), case_id=each.case_id) for each in phases)
    lines = failure_lines(phases, Attribution(phases=trees))
    assert len(lines) == 15
    assert lines[-1] == "  ... and 1 more, in run.json"

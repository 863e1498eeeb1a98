"""The summary on the terminal."""

from __future__ import annotations

from dataclasses import replace

import pytest

from perfsuite.records.judgement import Judgement
from perfsuite.records.outcome import Outcome
from perfsuite.report.terminal import next_step, summary_text

PASSED = Judgement(
    case_id="phase/a-q8_0/siso/decode",
    kind="phase",
    samples_ns=(5_000_000,) * 3,
    measured_ns=5_000_000,
    floor_ns=1,
    expected_ns=4_000_000,
    limit_ns=None,
    baseline_ns=4_900_000,
    change_ratio=1.02,
    outcome=Outcome.PASS,
    reason="within the margin",
)


def case(case_id: str, outcome: Outcome = Outcome.PASS, **changes: object) -> Judgement:
    """A judgement of another case, its kind the first part of the id."""
    return replace(PASSED, case_id=case_id, kind=case_id.split("/")[0], outcome=outcome, **changes)  # type: ignore[arg-type]


def lines_of(*judgements: Judgement, is_color: bool = False, width: int = 120) -> list[str]:
    """Render a summary and split it."""
    return summary_text(judgements, width=width, is_color=is_color).splitlines()


def test_a_row_has_every_figure() -> None:
    """A case is a row of what was measured, expected and stored, the change and the outcome."""
    (row,) = [line for line in lines_of(PASSED) if "decode" in line]
    assert row.split() == ["decode", "5.00", "ms", "4.00", "ms", "4.90", "ms", "+2.0", "%", "pass"]


def test_what_was_not_measured_is_a_dash() -> None:
    """A figure that is not there is a dash and never a 0."""
    bare = replace(PASSED, measured_ns=None, expected_ns=None, baseline_ns=None, change_ratio=None)
    (row,) = [line for line in lines_of(replace(bare, outcome=Outcome.INVALID)) if "decode" in line]
    assert row.split() == ["decode", "-", "-", "-", "-", "invalid"]


def test_kinds_have_tables_in_their_order() -> None:
    """Phases come first, then operators, then kernels, then what a third party calls its own."""
    ids = ("mine/x/y", "kernel/add/n8/f32", "operator/a/b/decode/ffn_up", "phase/a/b/decode")
    text = "\n".join(lines_of(*(case(case_id) for case_id in ids)))
    places = [text.index(title) for title in ("Phases", "Operators", "Kernels", "Mine")]
    assert places == sorted(places)


def test_what_all_ids_share_is_said_once() -> None:
    """The parts that the ids of a table share are its title; each row keeps what tells it from the others."""
    ids = ("operator/a-q8_0/siso/decode/ffn_up", "operator/a-q8_0/siso/prefill/ffn_up")
    lines = lines_of(*(case(case_id) for case_id in ids))
    assert sum("a-q8_0/siso" in line for line in lines) == 1
    assert [line.split()[0] for line in lines if "ffn_up" in line] == ["decode/ffn_up", "prefill/ffn_up"]


@pytest.mark.parametrize("width", [1, 40, 200])
def test_a_narrow_terminal_loses_nothing(width: int) -> None:
    """However narrow the terminal, names and figures are whole."""
    name = "kernel/bmm_kqv/heads32-kvheads8-tokens1-positions1024-head64/f16"
    text = "\n".join(lines_of(case(name), case("kernel/add/n8/f32"), width=width))
    assert name.removeprefix("kernel/") in text
    assert "4.90 ms" in text


def test_color_is_used_only_where_it_is_wanted() -> None:
    """Escape sequences are there on a terminal, and nowhere else."""
    assert "\x1b[" in summary_text([PASSED], width=120, is_color=True)
    assert "\x1b[" not in summary_text([PASSED], width=120, is_color=False)


def test_nothing_to_tell_is_nothing() -> None:
    """Without cases there is no table, and the closing line says so."""
    assert summary_text([], width=120, is_color=False) == ""
    assert next_step([], "run.json") == ("perfsuite: nothing was measured; run.json",)


def test_outcomes_are_counted_in_their_order() -> None:
    """The closing line counts every outcome that occurred, the gravest first, and names the file."""
    outcomes = [Outcome.PASS, Outcome.NEW, Outcome.PASS, Outcome.SLOW]
    first, *_ = next_step((case(f"phase/a/b/{at}", outcome) for at, outcome in enumerate(outcomes)), "runs/1/run.json")
    assert first == "perfsuite: 1 slow, 1 new, 2 pass; runs/1/run.json"


@pytest.mark.parametrize("outcome", [Outcome.REGRESSED, Outcome.SLOW, Outcome.IMPOSSIBLE])
def test_every_failure_is_named_with_its_reason(outcome: Outcome) -> None:
    """What failed has a line of its own."""
    lines = next_step([case("phase/a/b/decode", outcome, reason="because")], "run.json")
    assert f"  {outcome.value}: phase/a/b/decode: because" in lines


def test_the_operators_that_carry_a_regression_are_named() -> None:
    """The operators that lost the most time are told, the largest loss first, three at the most."""
    ids = [f"operator/a/b/decode/op{at}" for at in range(5)]
    found = [
        case(case_id, Outcome.REGRESSED, measured_ns=10_000 + at * 1000, baseline_ns=10_000)
        for at, case_id in enumerate(ids)
    ]
    (carriers,) = [line for line in next_step(found, "run.json") if "went to" in line]
    assert carriers == "  the time went to: decode/op4 (+4.00 µs), decode/op3 (+3.00 µs), decode/op2 (+2.00 µs)"


def test_reasons_that_many_cases_share_are_told_once() -> None:
    """Cases that were not decided are summed up by their reason."""
    found = [case(f"phase/a/b/{at}", Outcome.INVALID, reason="busy") for at in range(7)]
    assert "  invalid (7 cases): busy" in next_step(found, "run.json")


def test_new_cases_say_how_to_be_kept() -> None:
    """Where nothing failed, new cases are told with how to record them; where something did, they are not."""
    new = case("phase/a/b/decode", Outcome.NEW)
    assert any("--baseline=record" in line for line in next_step([new], "run.json"))
    slow = case("phase/a/b/prefill", Outcome.SLOW)
    assert not any("--baseline=record" in line for line in next_step([new, slow], "run.json"))

"""The tables of the last screen."""

from __future__ import annotations

from dataclasses import replace

import pytest

from perfsuite.records.outcome import Judgement, Outcome
from perfsuite.report.summary_table import MAX_ROWS, summary_text
from perfsuite.testing.run_files import HOSTILE_NAMES

from ..synthetic_judgements import PASSED, case


def lines_of(
    *judgements: Judgement, is_color: bool = False, width: int | None = 120, shows_all: bool = False
) -> list[str]:
    """Render a summary and split it."""
    return summary_text(judgements, width=width, is_color=is_color, shows_all=shows_all).splitlines()


def test_a_row_has_every_figure() -> None:
    """A case is a row of what was measured, its speed, what was expected and stored, the change and the outcome."""
    (row,) = [line for line in lines_of(PASSED) if "decode" in line]
    assert row.split() == ["decode", "5.00", "ms", "200", "4.00", "ms", "4.90", "ms", "+2.0", "%", "pass"]
    bare = replace(PASSED, case_id="phase/a-q8_0/siso/copy", measured_ns=None, expected_ns=None, change_ratio=None)
    _, head, _, row = lines_of(replace(PASSED, baseline_ns=None), replace(bare, baseline_ns=None))
    assert head.split() == ["case", "measured", "tokens/s", "expected", "change", "outcome"]
    assert row.split() == ["copy", "-", "-", "-", "-", "pass"]


def test_what_all_ids_share_is_said_once() -> None:
    """It is the title; kinds come in the order of the report, under its headings."""
    ids = ("operator/a-q8_0/siso/decode/ffn_up", "operator/a-q8_0/siso/prefill/ffn_up")
    lines = lines_of(*(case(case_id) for case_id in ids))
    assert sum("a-q8_0/siso" in line for line in lines) == 1
    assert [line.split()[0] for line in lines if "ffn_up" in line] == ["decode/ffn_up", "prefill/ffn_up"]
    kinds = ("mine/x/y", "kernel/add/n8/f32", "operator/a/b/decode/ffn_up", "phase/a/b/decode")
    text = "\n".join(lines_of(*map(case, kinds)))
    places = [text.index(title) for title in ("Phases", "Operators", "Kernels", "Mine")]
    assert places == sorted(places)
    text = "\n".join(lines_of(case("shape-kept/x/y"), case("fidelity/x/y")))
    assert text.index("Fidelity of the suite's own timings x") < text.index("Kept shapes x")


@pytest.mark.parametrize("width", [1, 60, 80, 110])
def test_a_narrow_terminal_breaks_no_word(width: int) -> None:
    """Names fold after a slash, a dash or an underscore, figures and outcomes never, and no line is too long."""
    name = "bmm_kqv/heads32-kvheads8-tokens1-positions1024-head64/f16"
    lines = lines_of(case(f"kernel/{name}", Outcome.INCONCLUSIVE), case("kernel/add/n8/f32"), width=width)
    assert all(len(line) <= max(width, 60) for line in lines)
    pieces = "".join(line.split()[0] for line in lines[2:])
    assert name in pieces
    assert any("5.00 ms" in line and line.endswith("inconclusive") for line in lines)


def test_the_width_decides_what_is_spared() -> None:
    """The forecast goes first, then the baseline; without a terminal no line is folded or ends in spaces."""
    long = case("phase/a/b/a-name-of-some-length-and-more")
    (row,) = [line for line in lines_of(long, case("phase/a/b/decode"), width=60) if line.startswith("decode")]
    assert row.split() == ["decode", "5.00", "ms", "+2.0", "%", "pass"]
    name = "x" * 300
    lines = lines_of(case(f"mine/a/{name}"), case("mine/b/c"), width=None)
    assert any(f"a/{name}" in line and line.endswith("pass") for line in lines)
    assert [line for line in lines if line != line.rstrip()] == []


def test_color_is_used_only_where_it_is_wanted() -> None:
    """Escape sequences are there on a terminal, and nowhere else; of nothing there is no table."""
    assert "\x1b[" in summary_text([PASSED], width=120, is_color=True)
    assert "\x1b[" not in summary_text([PASSED], width=120, is_color=False)
    assert summary_text([], width=120, is_color=False) == ""


@pytest.mark.parametrize("name", HOSTILE_NAMES)
def test_a_name_steers_no_terminal(name: str) -> None:
    """Controls, escape sequences and marks of direction in a name are written out, and markup is text."""
    text = summary_text([case(f"mine/x/{name}"), case("mine/y/z")], width=None, is_color=False)
    assert not set(text) & set(map(chr, [*range(10), *range(11, 32), *range(0x80, 0xA0), 0x202E, 0x202B, 0x200B]))
    assert "[bold red]rich[/]" not in name or name in text


def many(outcome: Outcome, n: int, kind: str = "operator") -> list[Judgement]:
    """So many cases of one outcome."""
    return [case(f"{kind}/a/b/decode/{outcome.value}{at}", outcome) for at in range(n)]


def test_many_cases_are_counted_in_a_line() -> None:
    """Those that somebody must look at are shown with all phases, what failed first; with -v each case has its row."""
    found = [case("phase/a/b/decode"), *many(Outcome.PASS, 70), *many(Outcome.SLOW, 2), *many(Outcome.NEW, 3)]
    lines = lines_of(*found)
    assert sum("slow" in line for line in lines) == 2
    assert sum("decode" in line.split() for line in lines) == 1
    assert lines[-1] == "and 3 new, 70 pass (-v shows them)"
    lines = lines_of(*many(Outcome.INCONCLUSIVE, 100), *many(Outcome.REGRESSED, 5))
    assert sum(line.endswith(("inconclusive", "regressed")) for line in lines) == MAX_ROWS
    assert sum(line.endswith("regressed") for line in lines) == 5
    assert lines[-1] == f"and {105 - MAX_ROWS} inconclusive (-v shows them)"
    assert sum(line.endswith("pass") for line in lines_of(*many(Outcome.PASS, 100), shows_all=True)) == 100


def test_an_invalid_figure_is_marked_as_rough() -> None:
    """A line below says what the mark means; the change, which would mean nothing, is left out."""
    text = lines_of(replace(PASSED, outcome=Outcome.INVALID), replace(PASSED, case_id="phase/a-q8_0/siso/copy"))
    rough = next(line for line in text if line.startswith("decode"))
    assert rough.split() == ["decode", "~5.00", "ms", "~200", "4.00", "ms", "4.90", "ms", "-", "invalid"]
    assert [line for line in text if "~" in line and line != rough] == [text[-1]]
    assert "~" not in "".join(lines_of(PASSED, replace(PASSED, outcome=Outcome.INVALID, measured_ns=None)))

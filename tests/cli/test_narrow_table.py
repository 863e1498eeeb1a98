"""Tables on a narrow terminal."""

from __future__ import annotations

import io
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from rich.table import Table
from rich.text import Text

from perfsuite.cli.answer import Sheet
from perfsuite.cli.narrow_table import fitted
from tests.narrow_tables import hold_table, rendered

_CASE = "operator/smollm2-135m-q8_0/siso/prefill/ffn_gate_up_swiglu"


def blocks_of(table: Table, width: int) -> list[list[str]]:
    """The headings of each block of a table on a terminal of so many columns."""
    blocks = fitted(table, Console(file=io.StringIO(), width=width))
    return [["".join(str(column.header).split()) for column in block.columns] for block in blocks]


def test_a_name_folds_at_its_parts() -> None:
    """It keeps its place beside its figures, which fold nowhere."""
    headings = ("case", ">stored", ">new", ">change", ">99 % bounds", ">since anchor")
    table = Sheet(headings, [(_CASE, "5.00 ms", "5.10 ms", "+2.0 %", "+1.0 % to +3.0 %", "+4.0 %")]).table()
    assert len(blocks_of(table, 80)) == 1
    lines = [line.rstrip() for line in rendered(table)]
    assert "operator/" in lines[2]
    assert all(figure in lines[2] for figure in ("5.00 ms", "+1.0 % to +3.0 %", "+4.0 %"))
    assert [line[:28].strip() for line in lines[2:]] == [
        "operator/smollm2-135m-q8_0/",
        "siso/prefill/ffn_gate_up_",
        "swiglu",
    ]


def test_what_has_no_room_stands_below() -> None:
    """In blocks that begin with the columns that tell the rows apart, as many as that takes."""
    rows = [("lora", point, latency, *["12.345 ms"] * 6) for point in ("8", "16") for latency in ("TTFT", "TPOT")]
    headings = ("axis", "point", "latency", *(f">figure{number}" for number in range(6)))
    table = Sheet(headings, rows).table()
    assert blocks_of(table, 80) == [
        ["axis", "point", "latency", "figure0", "figure1", "figure2", "figure3", "figure4"],
        ["axis", "point", "latency", "figure5"],
    ]
    hold_table(table)
    hold_table(table, 40)


def test_a_row_keeps_its_colour() -> None:
    table = Sheet(("", *(f">figure {number}" for number in range(12))), [["a", *["12.345 ms"] * 12]], styles=["red"])
    console = Console(file=io.StringIO(), width=40)
    assert {row.style for block in fitted(table.table(), console) for row in block.rows} == {"red"}


def test_a_name_steers_no_terminal_and_counts_as_it_is_shown() -> None:
    """An escape sequence is written out before its width is taken."""
    table = Table("case", "time", box=None, pad_edge=False)
    table.add_row(Text("\x1b[31m" * 20), "5.00 ms")
    lines = rendered(table)
    assert max(map(len, lines)) <= 80
    assert "".join(line.replace("5.00 ms", "").strip() for line in lines[1:]) == r"\x1b[31m" * 20


@given(
    st.lists(st.lists(st.text(st.sampled_from("ab/-_ 漢"), max_size=90), min_size=4, max_size=4), max_size=4),
    st.lists(st.sampled_from(["case", "<kind", ">time", "95 % within"]), min_size=4, max_size=4),
    st.integers(24, 120),
)
def test_any_table_fits(rows: list[list[str]], headings: list[str], width: int) -> None:
    """Whatever is in it: no line is wider than the terminal, and no letter is lost."""
    hold_table(Sheet(headings, rows).table(), width)


@pytest.mark.parametrize("width", [1, 3, 15])
def test_a_terminal_of_a_few_columns_is_no_traceback(width: int) -> None:
    lines = rendered(Sheet(("case", ">time", ">change"), [["phase/decode", "5.00 ms", "+2 %"]]).table(), width)
    assert width < 15 or not Counter("phase/decode5.00ms+2%") - Counter("".join(lines))

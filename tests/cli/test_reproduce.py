"""``perfsuite reproduce``."""

from __future__ import annotations

import json
from typing import Any

import pytest

from perfsuite.cli import main
from perfsuite.expectation.paper.tables import PAPER_TABLES
from tests.command_streams import Refused, Streams


def reproduced(capsys: Streams, *arguments: str) -> list[dict[str, Any]]:
    """What the command prints as JSON, which must succeed."""
    assert main(["reproduce", "life", "--json", *arguments]) == 0
    rows: list[dict[str, Any]] = json.loads(capsys.readouterr().out)
    return rows


def test_every_table_is_told_to_people(capsys: Streams) -> None:
    """Each table has its title, a printed value beside a computed one, and the last line counts the cells."""
    assert main(["reproduce", "life"]) == 0
    out = capsys.readouterr().out
    assert all(f"Table {number}: computed [printed]" in out for number in PAPER_TABLES)
    assert "29.2941 [29.2941]" in out
    assert out.endswith("119 of 119 reproducible cells inside their windows\n")


def test_a_held_cell_stands_beside_its_value(capsys: Streams) -> None:
    """Where a value is printed, its window, the relative error and whether it can be reproduced are reported."""
    rows = reproduced(capsys, "--table", "8")
    first, second = rows[0], rows[1]
    assert first == {
        "table": 8,
        "model": "Llama2-7B-int4",
        "layers": 32,
        "per_layer": 19,
        "value": 611,
        "printed": 611.0,
        "accept_low": 610.5,
        "accept_high": 611.5,
        "reproducible": True,
        "relative_error": 0.0,
    }
    assert "printed" not in second


def test_one_table_can_be_asked_for(capsys: Streams, refused: Refused) -> None:
    """The option limits the rows to it; an unknown one lists the tables."""
    assert {row["table"] for row in reproduced(capsys, "--table", "11")} == {11}
    assert "table 13 is not LIFE's; accepted are 4, 5" in refused(["reproduce", "life", "--table", "13"])


def test_a_value_outside_its_window_fails(capsys: Streams, monkeypatch: pytest.MonkeyPatch) -> None:
    """The exit code is 1, the row is marked and the count is reported."""
    monkeypatch.setattr("perfsuite.expectation.paper.tables.GIGA", 2e9)
    assert main(["reproduce", "life", "--table", "12"]) == 1
    out = capsys.readouterr().out
    assert "0 of 16 reproducible cells inside their windows" in out
    assert "0.285213 [0.6] outside" in out
    assert main(["reproduce", "life", "--table", "12", "--json"]) == 1

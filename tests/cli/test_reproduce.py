"""``perfsuite reproduce``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from perfsuite.cli import main
from perfsuite.expectation.paper.decode_tables import PAPER_TABLES, table_5
from perfsuite.workload.catalog import names
from perfsuite.workload.gguf_metadata import read_gguf
from tests.command_streams import Refused, Streams


def test_the_catalogue_is_listed(capsys: Streams) -> None:
    assert main(["architectures"]) == 0
    rows = capsys.readouterr().out
    assert all(name in rows for name in names())


def test_a_synthetic_file_is_written(tmp_path: Path, capsys: Streams) -> None:
    """The file has the architecture, the quantisation and the depth that were asked for, and its size is reported."""
    path = tmp_path / "x.gguf"
    assert main(["synthesize", "smollm2-135m", "--quant", "q4_0", "--layers", "2", "-o", str(path)]) == 0
    assert read_gguf(path).architecture.n_layers == 2
    assert read_gguf(path).tensor_types["blk.1.ffn_up.weight"] == "Q4_0"
    assert capsys.readouterr().out.startswith(f"{path}: smollm2-135m")
    assert [each.name for each in tmp_path.iterdir()] == ["x.gguf"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["smollm2-135mm"], "did you mean smollm2-135m"),
        (["smollm2-135m", "--quant", "q9_9"], "q9_9"),
        (["smollm2-135m", "--layers", "0"], "n_layers"),
    ],
)
def test_what_cannot_be_synthesized_is_one_line(
    tmp_path: Path, refused: Refused, arguments: list[str], message: str
) -> None:
    """An unknown architecture or quantisation, and a depth of nothing, leave no file."""
    assert message in refused(["synthesize", *arguments, "-o", str(tmp_path / "x.gguf")])
    assert list(tmp_path.iterdir()) == []


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


def test_rows_have_the_columns_of_their_table(capsys: Streams) -> None:
    """Inputs are named as in the paper's tables, metrics where a table has several; values are not rounded."""
    rows = reproduced(capsys)
    columns = {
        row["table"]: set(row) - {"printed", "relative_error", "accept_low", "accept_high", "reproducible"}
        for row in rows
    }
    base = {"table", "value"}
    assert columns == {
        4: base | {"prompt", "metric"},
        5: base | {"variant", "prompt", "metric"},
        6: base | {"hw", "prompt", "metric"},
        7: base | {"prompt", "variant", "metric"},
        8: base | {"model", "layers", "per_layer"},
        9: base | {"prompt", "variant", "metric"},
        10: base | {"hw", "prompt", "metric"},
        11: base | {"mode", "attention", "token"},
        12: base | {"layer", "rank"},
    }
    assert {row["value"] for row in rows} >= {row.value for row in table_5()}


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
    monkeypatch.setattr("perfsuite.expectation.paper.decode_tables.GIGA", 2e9)
    assert main(["reproduce", "life", "--table", "12"]) == 1
    out = capsys.readouterr().out
    assert "0 of 16 reproducible cells inside their windows" in out
    assert "0.285213 [0.6] outside" in out
    assert main(["reproduce", "life", "--table", "12", "--json"]) == 1

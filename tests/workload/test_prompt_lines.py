"""Lines of files of prompts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from perfsuite.errors import PerfsuiteError
from perfsuite.workload.prompt_lines import read_lines


@pytest.mark.parametrize(
    ("content", "number", "fields"),
    [
        ('\n{"text": "a"}\n', 2, {"text": "a"}),
        ("\n 12 \n", 2, {"n_tokens": "12", "line": 2}),
        ("id,n_tokens\nx,12\n", 2, {"id": "x", "n_tokens": "12"}),
        ('id,n_tokens\n"a\nb",12\n', 3, {"id": "a\nb", "n_tokens": "12"}),
    ],
)
def test_the_first_line_tells_the_format(content: str, number: int, fields: dict[str, Any], tmp_path: Path) -> None:
    """JSON, a length a line, or CSV, whose records may go over lines; each knows where it stands."""
    path = tmp_path / "p"
    path.write_text(content)
    (line,) = read_lines(path)
    assert (line.where, line.fields) == (f"{path}: line {number}", fields)


def test_a_file_without_any_format_is_refused(tmp_path: Path) -> None:
    """Plain text is CSV without the column, and the message tells all three formats."""
    path = tmp_path / "p"
    path.write_text("What is this?\nAnd this?\n")
    with pytest.raises(
        PerfsuiteError, match=r"columns are What is this\?; expected n_tokens among them, JSON lines, or a"
    ):
        read_lines(path)


@pytest.mark.parametrize("content", ["n_tokens", "id,n_tokens\n", "id,n_tokens\n\n"])
def test_a_heading_alone_is_empty(content: str, tmp_path: Path) -> None:
    """A CSV without rows has no prompt."""
    path = tmp_path / "p"
    path.write_text(content)
    with pytest.raises(PerfsuiteError, match="is empty but for its heading, expected at least one prompt"):
        read_lines(path)


@pytest.mark.parametrize(
    ("field", "message"),
    [
        ("NaN", "has NaN or an infinity"),
        ("[-Infinity]", "has NaN or an infinity"),
        ("1e999", "has NaN or an infinity"),
        ('"\\ud800"', r"has '\\ud800', half a surrogate pair"),
        ('{"\\udc00": 1}', r"has '\\udc00', half a surrogate pair"),
        ("[" * 100_000 + "]" * 100_000, "is (no JSON|nested too deeply)"),
    ],
)
def test_json_that_cannot_be_written_is_refused(field: str, message: str, tmp_path: Path) -> None:
    """Wherever it stands in a line; a pair of surrogates is a letter."""
    path = tmp_path / "p"
    path.write_text('{"n_tokens": 1, "text": "\\ud83d\\ude00"}\n{"n_tokens": 1, "extra": ' + field + "}\n")
    with pytest.raises(PerfsuiteError, match=f"line 2: {message}"):
        read_lines(path)


def test_a_csv_that_is_broken_is_told_with_its_line(tmp_path: Path) -> None:
    """A field that is too long for CSV, in a record and in the heading."""
    path = tmp_path / "p"
    for before, number in (("n_tokens,text\n1,a\n2,", 3), ("", 1)):
        path.write_text(before + "x" * 200_000)
        with pytest.raises(PerfsuiteError, match=f"line {number}: is no CSV"):
            read_lines(path)

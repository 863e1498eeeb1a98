"""``perfsuite synthesize``."""

from __future__ import annotations

from pathlib import Path

import pytest

from perfsuite.cli import main
from perfsuite.workload.catalog import names
from perfsuite.workload.gguf_metadata import read_gguf
from tests.command_streams import Refused, Streams


def test_the_catalogue_is_listed(capsys: Streams) -> None:
    """Every architecture of the catalogue is a row."""
    assert main(["architectures"]) == 0
    rows = capsys.readouterr().out
    assert all(name in rows for name in names())


def test_a_synthetic_file_is_written(tmp_path: Path, capsys: Streams) -> None:
    """The file has the architecture, the quantisation and the depth that were asked for, and its size is told."""
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


def test_a_file_that_cannot_be_written_is_one_line(tmp_path: Path, refused: Refused) -> None:
    """A folder that is none is told with the path."""
    (tmp_path / "file").touch()
    path = tmp_path / "file" / "x.gguf"
    assert str(path) in refused(["synthesize", "smollm2-135m", "--layers", "1", "-o", str(path)])

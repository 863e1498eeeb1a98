from __future__ import annotations

from pathlib import Path

import pytest

from perfsuite.errors import ArchitectureError
from perfsuite.workload.model_spec import read_spec

_TEXT = """
architecture = "gemma3"
wanted = ["output.weight"]

[metadata]
block_count = 2
embedding_length = 64
"attention.layer_norm_rms_epsilon" = 1e-6
"attention.sliding_window_pattern" = [true, false]

[tensors]
"blk.*.attn_q.weight" = [64, 64]
"""


def test_a_file_describes_a_model(tmp_path: Path) -> None:
    """Metadata, arrays included, and the list of tensors become a shape of the name that is asked for."""
    path = tmp_path / "own.toml"
    path.write_text(_TEXT)
    spec = read_spec(path)
    shape = spec.shape("own")
    assert (shape.name, shape.gguf_architecture, spec.wanted) == ("own", "gemma3", ("output.weight",))
    assert dict(shape.metadata)["attention.sliding_window_pattern"] == (True, False)
    assert [each.name for each in shape.tensors] == ["blk.0.attn_q.weight", "blk.1.attn_q.weight"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("architecture = 3\n[metadata]\n", "architecture is 3, expected text"),
        ('architecture = "llama"\n', "metadata is missing"),
        (_TEXT.replace("wanted", "wants"), "wants"),
        ("architecture =", "is not TOML"),
        (_TEXT.replace("block_count = 2", "depth = 2"), "block_count is None in its metadata, expected a whole number"),
    ],
)
def test_a_mistake_is_one_line(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "own.toml"
    path.write_text(text)
    with pytest.raises(ArchitectureError) as raised:
        read_spec(path).shape("own")
    assert message in str(raised.value)
    assert "\n" not in str(raised.value)

from __future__ import annotations

from pathlib import Path

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

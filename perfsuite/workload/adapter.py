"""A synthetic LoRA adapter: a pair of matrices beside each matrix of a model's layers, all zeros.

What a model computes stays as it was, router's choices included, and takes as long as with a trained adapter.
"""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path

from perfsuite.errors import GgufError
from perfsuite.records.whole_file import whole_path
from perfsuite.workload.architecture import Architecture
from perfsuite.workload.model_shape import ModelShape, shape_of
from perfsuite.workload.weights import Weights


def adapter_weights(weights: Weights, rank: int, *, cache_dir: Path) -> Weights:
    """Return an adapter of the weights as a file like any other; it is written into `cache_dir` the first time.

    Raises GgufError: the file cannot be written.
    """
    shape = weights.shape
    digest = sha256(f"{rank} {shape!r}".encode()).hexdigest()[:16]
    path = cache_dir / f"{weights.name}-lora{rank}-{digest}.gguf"
    if not path.is_file():
        _write_whole(shape, rank, path)
    return Weights(
        name=path.stem,
        gguf_architecture=weights.gguf_architecture,
        known_architecture=weights.known_architecture,
        shape=shape,
        tensor_types={},
        quantization=None,
        path=path,
        identity=f"adapter:{digest}",
    )


def _write_whole(shape: ModelShape, rank: int, path: Path) -> None:
    with whole_path(path, GgufError) as partial:
        write_adapter(shape, rank, partial)


def write_adapter(model: Architecture | ModelShape, rank: int, path: Path) -> None:
    """Write an adapter for every matrix of the layers, those too that the engine loads and never adapts."""
    # Imported here because both are slow to import, and most processes never write.
    import numpy as np
    from gguf import GGUFWriter

    shape = shape_of(model)
    writer = GGUFWriter(path, shape.gguf_architecture)
    writer.add_type("adapter")
    writer.add_string("adapter.type", "lora")
    writer.add_float32("adapter.lora.alpha", float(rank))
    for spec in shape.tensors:
        if spec.name.startswith("blk.") and spec.name.endswith(".weight") and "norm" not in spec.name:
            n_in, n_out, *experts = (*spec.ne, 1)[: max(2, len(spec.ne))]
            writer.add_tensor(f"{spec.name}.lora_a", np.zeros((*experts, rank, n_in), dtype=np.float32))
            writer.add_tensor(f"{spec.name}.lora_b", np.zeros((*experts, n_out, rank), dtype=np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()

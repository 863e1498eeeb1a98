"""The tensors of a model of any architecture, as the engine wants them: asked in a process of its own.

The engine knows the names and extents of everything that an architecture can have. What a file may lack as well is left
out where the model loads and its graph builds without it, unless somebody wants it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from perfsuite.measure.environment import environment_engine
from perfsuite.measure.launch import run_worker
from perfsuite.measure.plan import TensorsPlan
from perfsuite.workload.model_shape import ModelShape
from perfsuite.workload.tensors import TensorSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedTensors:
    """What the engine answers about one model."""

    #: The tensors that a file of it has, and those that it could have as well.
    tensors: tuple[TensorSpec, ...]
    left_out: tuple[TensorSpec, ...]
    #: Whether the engine builds a graph of them; of a draft that needs its target beside it, it does not.
    is_built: bool


def ask_for_tensors(
    shape: ModelShape, *, cache_dir: Path, wanted: Sequence[str] = (), unwanted: Sequence[str] = ()
) -> AskedTensors:
    """Ask the engine which tensors a model with this metadata has; those of `shape` itself do not matter.

    A kind in `wanted` or `unwanted` is a tensor's name with a ``*`` for the number of a layer; ``blk.*.`` may be left
    out. Raises MeasurementError with the engine's own words where it cannot make such a model.
    """
    from perfsuite.workload.synthetic import write_metadata  # the gguf package is slow to import

    engine = environment_engine()
    with TemporaryDirectory(prefix="perfsuite-") as folder:
        header = Path(folder) / "header.gguf"
        write_metadata(shape, header)
        plan = TensorsPlan(
            library_dir=str(engine.library_dir),
            engine_build_id=engine.build_id,
            cache_dir=str(cache_dir),
            header_path=str(header),
            wanted=_kinds(wanted),
            unwanted=_kinds(unwanted),
        )
        answer = run_worker(plan)
    specs = [(TensorSpec(name=name, ne=_extents(ne)), is_left_out) for name, ne, is_left_out in answer["tensors"]]
    return AskedTensors(
        tensors=tuple(spec for spec, is_left_out in specs if not is_left_out),
        left_out=tuple(spec for spec, is_left_out in specs if is_left_out),
        is_built=answer["is_built"],
    )


def with_engine_tensors(
    shape: ModelShape, *, cache_dir: Path, wanted: Sequence[str] = (), unwanted: Sequence[str] = ()
) -> ModelShape:
    """Return a shape with the tensors that the engine wants of its metadata."""
    asked = ask_for_tensors(shape, cache_dir=cache_dir, wanted=wanted, unwanted=unwanted)
    return replace(shape, tensors=asked.tensors)


def _kinds(names: Sequence[str]) -> tuple[str, ...]:
    return tuple(kind for name in names for kind in (name, f"blk.*.{name}"))


def _extents(ne: Sequence[int]) -> tuple[int, ...]:
    """Drop the last dimensions that are 1, as ggml counts a tensor's dimensions."""
    n_dims = max((at + 1 for at, extent in enumerate(ne) if extent > 1), default=1)
    return tuple(ne[:n_dims])

"""Turns a workload on an engine into the plan of one process."""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

from perfsuite.errors import GgufError
from perfsuite.expectation.llama_workload import LlamaWorkload
from perfsuite.measure.board.protocol import Board
from perfsuite.measure.engine import Engine
from perfsuite.measure.opencl_backend import OpenClBackend
from perfsuite.measure.plan import LlamaPlan
from perfsuite.records.events import EngineRecord, KeptOutputs
from perfsuite.records.whole_file import whole_path
from perfsuite.workload.architecture import Architecture
from perfsuite.workload.model_shape import ModelShape, shape_of
from perfsuite.workload.projector import projector_file
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


def llama_plan(
    workload: LlamaWorkload,
    engine: Engine,
    *,
    gguf_path: Path,
    cache_dir: Path,
    n_threads: int,
    opencl: OpenClBackend | None = None,
    n_repetitions: int = 1,
    prompt_lengths: tuple[int, ...] = (),
) -> LlamaPlan:
    """Plan one process of `n_repetitions`, on the processor or with all layers on an OpenCL device.

    The recorder hears of operators from the CPU backend alone; of those on a device the OpenCL layer tells. A build
    with a BLAS library, or an OpenCL runtime, has threads beside OpenMP's, which would all inherit the processor that
    the first thread is bound to, so nothing is bound there.
    """
    scenario, settings, embeds = workload.scenario, workload.settings, workload.weights.embeds
    n_batch = max(1, scenario.n_prompt, workload.n_ubatch, *prompt_lengths)
    return LlamaPlan(
        gguf_path=str(gguf_path),
        library_dir=str(engine.library_dir),
        engine_build_id=engine.build_id,
        cache_dir=str(cache_dir),
        n_threads=n_threads,
        n_prompt=scenario.n_prompt,
        n_gen=scenario.n_gen,
        n_depth=scenario.n_depth,
        n_repetitions=n_repetitions,
        prompt_lengths=prompt_lengths,
        n_batch=n_batch,
        n_sequences=workload.n_sequences,
        n_draft=workload.n_draft,
        acceptance_ratio=workload.drafting.speculation.acceptance_ratio if workload.drafting else 0.0,
        n_ubatch=n_batch if embeds else workload.n_ubatch,
        flash_attn=settings.flash_attn,
        embeds=embeds,
        type_k=settings.type_k,
        type_v=settings.type_v,
        swa_full=settings.swa_full,
        n_gpu_layers=999 if opencl else 0,
        backend_library=str(opencl.library) if opencl and opencl.library else None,
        recorder="none" if opencl else "callback",
        binds_threads=opencl is None and binds_threads(engine),
    )


def with_files(plan: LlamaPlan, workload: LlamaWorkload, board: Board, models_dir: Path) -> LlamaPlan:
    """Return the plan with the files beside the model that the workload needs, which are there afterwards."""
    if (rank := workload.settings.lora_rank) is not None:
        adapter = adapter_weights(workload.weights, rank, cache_dir=models_dir)
        plan = replace(plan, lora_path=str(board.place_weights(adapter)))
    if (draft := workload.draft) is not None:
        plan = replace(plan, draft_path=str(board.place_weights(draft.weights)))
    if (projector := workload.projector) is not None:
        path = board.place_weights(projector_file(projector, cache_dir=models_dir))
        plan = replace(plan, mmproj_path=str(path), image_size=projector.image_size)
    return plan


def binds_threads(engine: Engine) -> bool:
    """Tell whether each thread may get a processor of its own: not where a BLAS library has threads beside OpenMP's."""
    return not engine.has_blas


def with_drawn_layout(plan: LlamaPlan, order: random.Random) -> LlamaPlan:
    """Return the plan of one process among many, whose buffers lie where chance puts them."""
    return replace(plan, layout_seed=order.randrange(1, 2**31))


def kept_outputs(plan: LlamaPlan, records: Iterable[EngineRecord]) -> tuple[KeptOutputs, ...]:
    """Return what processes of one plan came to; nothing of those that kept none."""
    lengths = "+".join(map(str, plan.prompt_lengths or (plan.n_prompt,)))
    prompts = (
        f"seed {plan.seed}, {plan.n_repetitions} times {lengths} tokens behind {plan.n_depth}, {plan.n_gen} generated"
    )
    return tuple(
        KeptOutputs(prompts=prompts, outputs=each.outputs, chosen_tokens=each.chosen_tokens)
        for each in records
        if each.outputs
    )

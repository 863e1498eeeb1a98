"""Asks the engine for graphs that the suite cannot write itself, once for each model and engine.

Those are a model's, and that by which a projector encodes an image.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec

from perfsuite.errors import ArchitectureError, MeasurementError, PerfsuiteError
from perfsuite.expectation.graphs.operator import Batch, Operator
from perfsuite.expectation.llama_workload import EngineGraphs, GraphKey, LlamaWorkload, graph_key
from perfsuite.experiments.engine_graph import STAND_IN_OUTPUTS, said_operators
from perfsuite.experiments.run_config import RunConfig
from perfsuite.measure.board.protocol import Board
from perfsuite.measure.engine import Engine
from perfsuite.measure.llama_plan import llama_plan, with_files
from perfsuite.measure.plan import SCHEMA, GraphsPlan, ImageGraphPlan, LlamaPlan, dump_plan
from perfsuite.records.events import graph_from_plain
from perfsuite.records.whole_file import write_whole_bytes

#: Reading the graphs of the largest models takes a second or two.
_LIMIT_S = 60.0


def with_run_graphs(config: RunConfig) -> RunConfig:
    """Return a run with what its board's engine says of its model, as `with_engine_graphs` does."""
    notes: list[str] = []
    models_dir = config.cache_dir / "models"
    workload = with_engine_graphs(
        config.workload, config.engine, config.board, models_dir=models_dir, remark=notes.append
    )
    return replace(config, workload=workload, graph_notes=tuple(notes))


def with_engine_graphs(
    workload: LlamaWorkload, engine: Engine, board: Board, *, models_dir: Path, remark: Callable[[str], None]
) -> LlamaWorkload:
    """Return a workload whose operators can be enumerated, where the engine says its graphs; else it says why not.

    What a run has beside its model is kept in `models_dir`, here and not on the board.
    What the suite writes itself is not asked for. The files of what is asked for are there afterwards.

    Raises ArchitectureError: the engine cannot load the model, or its projector, in its own words.
    """
    later = "are enumerated once they were recorded"
    if workload.projector is not None:
        try:
            workload = replace(workload, image_graph=image_graph(workload, engine, board, models_dir=models_dir))
        except MeasurementError as error:
            remark(f"operators of an image {later}: {error}")
    if workload.is_analytical:
        return workload
    try:
        return replace(workload, engine_graphs=engine_graphs(workload, engine, board, models_dir=models_dir))
    except MeasurementError as error:
        remark(f"operators {later}: {error}")
        return workload


def engine_graphs(
    workload: LlamaWorkload, engine: Engine, board: Board, *, models_dir: Path, batches: Sequence[Batch] | None = None
) -> EngineGraphs:
    """Ask the engine for the graphs of a workload's evaluations, or of others; no weight is read.

    Raises MeasurementError: this release says no graphs, or not of this architecture. ArchitectureError: it cannot load
    the model.
    """
    if workload.n_sequences > 1:
        raise MeasurementError("graphs of several sequences are not asked for")
    whole = GraphKey(1, 1, workload.n_ctx, is_first=False)
    asked = workload.graph_batches if batches is None else batches
    keys = tuple(dict.fromkeys((whole, *map(graph_key, asked))))
    plan = GraphsPlan(
        llama=_llama_plan(replace(workload, projector=None), engine, board, models_dir),
        batches=tuple((key.n_tokens, key.n_outputs or STAND_IN_OUTPUTS, key.n_kv) for key in keys),
    )
    return _operators_of(keys, _kept_graphs(plan, workload, board))


def image_graph(workload: LlamaWorkload, engine: Engine, board: Board, *, models_dir: Path) -> tuple[Operator, ...]:
    """Ask the engine for the operators by which the workload's projector encodes an image; none is computed.

    Raises MeasurementError: this release says no graph, or not of this projector. ArchitectureError: it cannot load the
    projector, or not for this model.
    """
    alone = replace(workload, drafting=None, settings=replace(workload.settings, lora_rank=None))
    # Whatever text follows, the image is the same.
    llama = replace(_llama_plan(alone, engine, board, models_dir), n_prompt=1, n_gen=0, n_depth=0, n_batch=1)
    (graph,) = _kept_graphs(ImageGraphPlan(llama=llama), workload, board)
    return said_operators(graph_from_plain(graph), GraphKey(1, 1, 1, is_first=True))


def _llama_plan(workload: LlamaWorkload, engine: Engine, board: Board, models_dir: Path) -> LlamaPlan:
    path, cache_dir = board.place_weights(workload.weights), board.facts().cache_dir
    llama = llama_plan(workload, engine, gguf_path=path, cache_dir=cache_dir, n_threads=1)
    return with_files(llama, workload, board, models_dir)


def _operators_of(keys: Sequence[GraphKey], graphs: Sequence[Sequence[Any]]) -> EngineGraphs:
    """Return the operators of all graphs; the first sees the whole cache."""
    nodes = tuple(map(graph_from_plain, graphs))
    return EngineGraphs(
        operators_by_key={
            key: said_operators(graph, key, whole=nodes[0]) for key, graph in zip(keys, nodes, strict=True)
        }
    )


def _kept_graphs(plan: GraphsPlan | ImageGraphPlan, workload: LlamaWorkload, board: Board) -> Sequence[Sequence[Any]]:
    """Return the graphs of a plan as the worker has them, or as they were kept when they were asked for before."""
    projector = workload.projector if plan.llama.mmproj_path else None
    llama = replace(
        plan.llama,
        gguf_path=workload.weights.identity,
        mmproj_path=projector.weights.identity if projector else None,
        cache_dir="",
    )
    known_by = replace(plan, llama=llama)
    name = sha256(f"{SCHEMA} ".encode() + dump_plan(known_by)).hexdigest()[:32]
    path = board.facts().cache_dir / "graphs" / f"{name}.msgpack"
    if board.is_local and (kept := _read(path)) is not None:
        return kept
    payload: Mapping[str, Any] = board.run(plan, limit_s=_LIMIT_S)
    if problem := payload.get("problem"):
        raise ArchitectureError(problem)
    graphs: Sequence[Sequence[Any]] = payload["graphs"]
    if board.is_local:
        write_whole_bytes(path, msgspec.msgpack.encode(graphs), PerfsuiteError)
    return graphs


def _read(path: Path) -> Sequence[Sequence[Any]] | None:
    """Return what was kept; None where there is nothing, or nothing that can be read."""
    try:
        return msgspec.msgpack.decode(path.read_bytes(), type=list[list[Any]])
    except (OSError, ValueError, RecursionError):  # what is no UTF-8, or no MessagePack
        return None

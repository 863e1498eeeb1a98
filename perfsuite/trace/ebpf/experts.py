"""The experts that routers chose, from the third source of the expert products that the eBPF recorder saw."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from perfsuite.records.bpf_log_file import EXPERTS_TAIL, BpfKind, BpfLog
from perfsuite.records.engine_trace import EXPERT_DTYPE, NOTHING, Experts, Ints
from perfsuite.trace.ebpf.intervals import Intervals
from perfsuite.trace.ebpf.nodes import Structures

#: The place of the ids among the sources of an expert product, and of the experts' matrices.
_IDS, _MATRICES = 2, 0
_LAYER = re.compile(r"-(\d+)(?: \(.*\))?$")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ExpertsFound:
    """Which experts were chosen, and what is doubtful about it."""

    experts: Experts
    #: Of a layer; None where no structure shows it.
    n_experts: int | None
    problems: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Chunk:
    """Ids of some tokens of one layer of one evaluation: one row a token."""

    ns: int
    evaluation: int
    layer: int
    first_token: int
    #: Tokens of the layer's whole batch.
    n_tokens: int
    ids: npt.NDArray[np.int32]


def experts_of(log: BpfLog, graphs: Intervals, iteration: Ints, structures: Structures) -> ExpertsFound:
    """Return the experts that a log shows.

    Tokens count from the first of their iteration's batch. A layer that computes fewer tokens than others computes the
    last ones: llama.cpp drops in the last layer what makes no output.
    """
    layers, n_experts = _layers(structures)
    chunks, n_unnamed = _chunks(log, graphs, layers)
    passes = _passes(chunks, iteration)
    parts = [_rows(chunk, each) for chunk, each in zip(chunks, passes, strict=True)]
    experts = np.concatenate([np.empty(0, EXPERT_DTYPE), *parts])
    order = np.argsort(experts["ns"], kind="stable")
    problems = ("layers of experts are numbered in the order of their ids: structure was not recorded",)
    return ExpertsFound(experts=experts[order], n_experts=n_experts, problems=problems if n_unnamed else ())


def _layers(structures: Structures) -> tuple[dict[int, int], int | None]:
    layers: dict[int, int] = {}
    n_experts = None
    for each in structures.operators:
        if each.op_name == "MUL_MAT_ID" and len(each.node.sources) > _IDS:
            named = _LAYER.search(each.node.sources[_IDS].name) or _LAYER.search(each.node.tensor.name)
            if named:
                layers[each.source_addresses[_IDS]] = int(named[1])
            n_experts = each.node.sources[_MATRICES].ne[2]
    return layers, n_experts


def _chunks(log: BpfLog, graphs: Intervals, layers: Mapping[int, int]) -> tuple[list[_Chunk], int]:
    """Return the ids of each layer in each evaluation once, and how many tensors have no layer in their name.

    Those are numbered in the order in which they come in their evaluation.
    """
    positions = log.positions(BpfKind.EXPERT_IDS)
    records = log.records[positions]
    evaluations = graphs.containing(records["ns"].astype(np.int64), records["tid"].astype(np.int64))
    found: dict[tuple[int, int, int], _Chunk] = {}
    unnamed: dict[int, dict[int, int]] = {}
    for position, record, evaluation in zip(positions.tolist(), records, evaluations.tolist(), strict=True):
        address, value = int(record["subject"]), int(record["value"])
        tail = log.tail(position)
        first_token, n_ids = EXPERTS_TAIL.unpack_from(tail)
        n_used, n_tokens = value & 0xFFFF, value >> 16
        key = evaluation, address, first_token
        if key in found or n_used < 1 or n_ids % n_used or not 0 <= first_token < n_tokens < 1 << 24:
            continue  # once more, or what a damaged log shows
        if (layer := layers.get(address)) is None:
            places = unnamed.setdefault(evaluation, {})
            layer = places.setdefault(address, len(places))
        found[key] = _Chunk(
            ns=int(record["ns"]),
            evaluation=evaluation,
            layer=layer,
            first_token=first_token,
            n_tokens=n_tokens,
            ids=np.frombuffer(tail, np.int32, n_ids, EXPERTS_TAIL.size).reshape(-1, n_used),
        )
    return sorted(found.values(), key=lambda chunk: chunk.ns), sum(map(len, unnamed.values()))


@dataclass(slots=True)
class _Pass:
    """One way through the layers: all of a batch, or as much of it as the engine computes at once."""

    iteration: int
    #: Tokens of the iteration in the passes before this one.
    before: int
    n_tokens: int = 0
    layer: int = NOTHING


def _passes(chunks: Sequence[_Chunk], iteration: Ints) -> list[_Pass]:
    """Return the pass of each chunk; a new one begins with a graph that comes back to a layer, or to one before it."""
    passes: list[_Pass] = []
    last_evaluation = NOTHING
    for chunk in chunks:
        own = int(iteration[chunk.evaluation]) if chunk.evaluation != NOTHING else NOTHING
        now = passes[-1] if passes else None
        if now is None or now.iteration != own:
            now = _Pass(iteration=own, before=0)
        elif chunk.evaluation != last_evaluation and chunk.layer <= now.layer:
            now = _Pass(iteration=own, before=now.before + now.n_tokens)
        now.layer, last_evaluation = chunk.layer, chunk.evaluation
        now.n_tokens = max(now.n_tokens, chunk.n_tokens)
        passes.append(now)
    return passes


def _rows(chunk: _Chunk, own: _Pass) -> Experts:
    n_rows, n_used = chunk.ids.shape
    made = np.empty(chunk.ids.size, EXPERT_DTYPE)
    first = own.before + own.n_tokens - chunk.n_tokens + chunk.first_token
    made["ns"], made["layer"], made["iteration"] = chunk.ns, chunk.layer, own.iteration
    made["token"] = np.repeat(first + np.arange(n_rows), n_used)
    made["slot"] = np.tile(np.arange(n_used), n_rows)
    made["expert"] = chunk.ids.reshape(-1)
    return made

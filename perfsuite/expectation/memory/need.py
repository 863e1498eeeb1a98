"""What a run of llama.cpp on the CPU needs of memory, predicted from the architecture, the types and the settings.

* With `mmap`, llama.cpp reads the whole file in (``MAP_POPULATE``), copies what it interleaves into its own buffer, and
  then gives back the ends of the file in front of the first and behind the last tensor that it uses in place. What
  its CPU backend interleaves goes by type, rows and processor; RISC-V and z paths, AMX and KleidiAI are not covered.
* The KV cache is exact, for it is allocated whole when a context is made.
* The CPU backend's scratch memory holds activations in the type that the dot product with a matrix takes. What each
  thread keeps for itself, some hundred KB, is left out.
* The compute buffer holds the activations of the largest graph that the engine prepares for: before its first token
  one of ``n = min(n_ctx, n_ubatch)`` tokens, all of which may give logits, over a cache that is full. A later, smaller
  graph of as many nodes keeps the offsets of that one, and so touches the beginnings of the same ranges only.

*Source*: ``llama_mmap`` in ``src/llama-mmap.cpp``, ``load_all_data`` in ``src/llama-model-loader.cpp``,
``src/llama-kv-cache.cpp``, ``sched_reserve`` in ``src/llama-context.cpp``, ``llama_vocab::impl`` in
``src/llama-vocab.cpp``, ``ggml_graph_plan`` and ``type_traits_cpu`` in ``ggml/src/ggml-cpu/ggml-cpu.c``,
``ggml_repack_get_optimal_repack_type`` and ``supports_op`` in ``ggml/src/ggml-cpu/repack.cpp`` and
``ggml_gallocr_alloc_graph`` in ``ggml/src/ggml-alloc.c`` of llama.cpp, as shipped with llama-cpp-python 0.3.36.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from perfsuite.errors import ArchitectureError
from perfsuite.expectation.graph import KV_PADDING, Batch, Operator
from perfsuite.expectation.graphs.operator import row_bytes
from perfsuite.expectation.graphs.place import Place, cache_of
from perfsuite.expectation.llama_workload import LlamaWorkload
from perfsuite.expectation.memory.linked_graph import linked_graph, place_tensors, reserved_bytes
from perfsuite.expectation.op_rules import PRODUCTS
from perfsuite.records.codec import Count
from perfsuite.records.events import Phase
from perfsuite.workload.ggml_types import GGML_TYPES
from perfsuite.workload.tensors import TensorSpec, tensor_specs
from perfsuite.workload.weights import Weights

#: What the engine asks of the processor, by the names of ``ggml_cpu_has_*``.
CPU_FEATURES = ("avx2", "avx512", "neon", "dotprod", "matmul_int8")

_I8MM = frozenset(("neon", "matmul_int8"))
_DOT = frozenset(("neon", "dotprod"))

#: For each type: features that must all be there, and rows of which a matrix must have a multiple.
_RULES: dict[str, tuple[tuple[frozenset[str], int], ...]] = {
    "Q4_0": ((frozenset(("avx2",)), 8), (_I8MM, 4), (_DOT, 4)),
    "Q4_K": ((frozenset(("avx2",)), 8), (_I8MM, 8), (_DOT, 8)),
    "Q2_K": ((frozenset(("avx512",)), 8),),
    "Q5_K": ((_I8MM, 8), (_DOT, 8)),
    "Q6_K": ((_I8MM, 8), (_DOT, 8)),
    "IQ4_NL": ((frozenset(("avx2",)), 8), (_DOT, 4)),
    "MXFP4": ((frozenset(("avx2",)), 8), (_DOT, 4)),
    "Q8_0": ((_I8MM, 4), (_DOT, 4)),
    "Q1_0": ((_I8MM, 4), (_DOT, 4)),
}


def is_repacked(spec: TensorSpec, type_name: str, cpu_features: Collection[str]) -> bool:
    """Whether a tensor is copied, interleaved: a matrix, or the matrices of routed experts, of a fitting shape.

    The token embeddings are looked up row by row and stay as they are; where they are the output matrix as well, that
    is a second tensor, which `weight_memory` counts.
    """
    return _is_product(spec) and fits_repacking(spec, type_name, cpu_features)


def fits_repacking(spec: TensorSpec, type_name: str, cpu_features: Collection[str]) -> bool:
    """Whether a product with this tensor has an interleaved form on a processor with these features."""
    rows = spec.ne[1] if len(spec.ne) > 1 else 1
    return any(
        needed <= frozenset(cpu_features) and rows % multiple == 0
        for needed, multiple in _RULES.get(type_name.upper(), ())
    )


def _is_product(spec: TensorSpec) -> bool:
    n_dimensions = max((at + 1 for at, n in enumerate(spec.ne) if n > 1), default=1)
    is_experts = spec.name.endswith("_exps.weight")
    return spec.name != "token_embd.weight" and n_dimensions == (3 if is_experts else 2)


#: Tensors begin at multiples of this in a GGUF that says nothing else, and in the engine's buffers.
_ALIGNMENT_BYTES = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightMemory:
    """The bytes of a model's weights, by where they lie."""

    #: The tensors in the file, all of which are resident while it is loaded.
    file_bytes: int
    #: From the first to the last tensor that is used in place.
    mapped_bytes: int
    #: Interleaved copies.
    repacked_bytes: int


def weight_memory(weights: Weights, cpu_features: Collection[str]) -> WeightMemory:
    """Return what weights take on a processor with these features (`repack.CPU_FEATURES`).

    Raises ArchitectureError: A tensor of the file is none that its architecture has, so its size is not known.
    """
    placed = tuple(_placed(weights))
    kept = [(at, at + size) for spec, type_name, at, size in placed if not is_repacked(spec, type_name, cpu_features)]
    repacked = sum(_aligned(size) for spec, type_name, _, size in placed if is_repacked(spec, type_name, cpu_features))
    return WeightMemory(
        file_bytes=max(at + size for *_, at, size in placed),
        mapped_bytes=max(end for _, end in kept) - min(start for start, _ in kept),
        repacked_bytes=repacked + _tied_output_bytes(weights, cpu_features),
    )


def _placed(weights: Weights) -> Iterator[tuple[TensorSpec, str, int, int]]:
    specs = {spec.name: spec for spec in tensor_specs(weights.architecture)}
    at = 0
    for name, type_name in weights.tensor_types.items():
        if name not in specs:
            raise ArchitectureError(f"{weights.name}: {name} is not a tensor of {weights.architecture.name}")
        size = tensor_bytes(specs[name], type_name)
        yield specs[name], type_name, at, size
        at += _aligned(size)


def tensor_bytes(spec: TensorSpec, type_name: str) -> int:
    """Return the stored size of a tensor."""
    return row_bytes(type_name, spec.ne[0]) * spec.n_rows


def _tied_output_bytes(weights: Weights, cpu_features: Collection[str]) -> int:
    """Return the size of the output matrix that is made from the token embeddings, where it is interleaved."""
    architecture = weights.architecture
    spec = TensorSpec(name="token_embd.weight", ne=(architecture.n_embd, architecture.n_vocab))
    type_name = weights.tensor_types[spec.name]
    if not architecture.tied_embeddings or not fits_repacking(spec, type_name, cpu_features):
        return 0
    return _aligned(tensor_bytes(spec, type_name))


def _aligned(n_bytes: int) -> int:
    return -(-n_bytes // _ALIGNMENT_BYTES) * _ALIGNMENT_BYTES


#: Memory is handed out by the kernel in pages of this size, when they are first written.
PAGE_BYTES = 4096


def worst_batch(workload: LlamaWorkload) -> Batch:
    """Return the evaluation that the engine prepares for: a full batch over a full cache, logits of every token."""
    n_tokens = min(workload.n_ctx, workload.n_ubatch)
    return workload.batch(workload.n_ctx, n_tokens=n_tokens, n_outputs=n_tokens)


def compute_bytes(workload: LlamaWorkload) -> int:
    """Return the size of the compute buffer, which the engine reserves when it makes a context.

    Raises ArchitectureError: the graph, or what its operators read, is not known.
    """
    graph = linked_graph(workload, worst_batch(workload))
    return reserved_bytes(graph, place_tensors(graph))


def touched_bytes(workload: LlamaWorkload, batches: Sequence[Batch]) -> int:
    """Return how much of the compute buffer `batches` write, in whole pages: what becomes resident of it."""
    prepared = place_tensors(linked_graph(workload, worst_batch(workload)))
    pages: set[int] = set()
    for batch in batches:
        graph = linked_graph(workload, batch)
        # A graph of another number of nodes is laid out anew.
        offsets = prepared if len(prepared) == len(graph) else place_tensors(graph)
        for tensor, at in zip(graph, offsets, strict=True):
            if at is not None and tensor.n_bytes:
                pages.update(range(at // PAGE_BYTES, (at + tensor.n_bytes - 1) // PAGE_BYTES + 1))
    return len(pages) * PAGE_BYTES


_OWN = frozenset(("F32", "F16", "BF16"))
_WITH_SUMS = frozenset(("Q4_1", "Q5_1"))
_SUPER_BLOCK_VALUES = 256


def work_bytes(workload: LlamaWorkload, batches: Iterable[Batch]) -> int:
    """Return the largest scratch memory that a product of any of these evaluations needs."""
    return max(
        (
            _scratch_bytes(operator)
            for batch in batches
            for operator in workload.operators(batch)
            if operator.op in PRODUCTS
        ),
        default=0,
    )


def _scratch_bytes(operator: Operator) -> int:
    matrix, activations = operator.sources[:2]
    kind = dot_type(matrix.type)
    if kind == activations.type.upper():
        return 0
    block = GGML_TYPES[kind].block_values
    return row_bytes(kind, -(-activations.n_elements // block) * block)


def dot_type(type_name: str) -> str:
    """Return the type that the engine turns activations into for a product with a matrix of a type."""
    name = type_name.upper()
    if name in _OWN:
        return name
    if name in _WITH_SUMS:
        return "Q8_1"
    return "Q8_K" if GGML_TYPES[name].block_values == _SUPER_BLOCK_VALUES else "Q8_0"


def kv_bytes(workload: LlamaWorkload) -> int:
    """Return the bytes of the KV caches of all layers.

    ``sum over layers of cells (row(h_kv d_k, type_k) + row(h_kv d_v, type_v))`` with the cells padded to 256, and fewer
    of them where a layer with a sliding window has a cache of its own. Absorbed latent attention keeps one latent head
    and has no values beside it.
    """
    place = workload.place(replace(worst_batch(workload), n_ctx=-(-workload.n_ctx // KV_PADDING) * KV_PADDING))
    return sum(_layer_bytes(place.at_layer(layer)) for layer in range(place.architecture.n_layers))


def _layer_bytes(place: Place) -> int:
    cache, mla = cache_of(place), place.architecture.mla
    keys = row_bytes(cache.type_k, cache.width_k)
    values = 0 if mla is not None and mla.absorbed else row_bytes(cache.type_v, cache.width_v)
    return cache.n_cells * (keys + values)


_LOGIT_BYTES = 4
#: What llama.cpp keeps of a token besides its text: an entry of the table (40), a node of the map from the text (64 as
#: the C library hands it out, and 8 of the buckets), and its piece (32). Texts of up to 15 bytes lie within.
_TOKEN_BYTES = 40 + 64 + 8 + 32


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryNeed:
    """Predicted bytes; what a process has before it opens a model is measured and no part of this."""

    #: Weights in the file, all of them resident while it is loaded.
    weights_file_bytes: Count
    #: The part of the file that stays mapped.
    weights_mapped_bytes: Count
    #: Weights that are copied, interleaved, beside it.
    weights_repacked_bytes: Count
    kv_bytes: Count
    #: The compute buffer as it is reserved, for the largest graph that may come.
    compute_bytes: Count
    #: The pages of it that this run's graphs write, which alone become resident.
    compute_touched_bytes: Count
    #: One row of logits.
    output_bytes: Count
    #: The CPU backend's scratch memory.
    work_bytes: Count
    #: The tokens of the vocabulary.
    vocabulary_bytes: Count = 0

    @property
    def weights_bytes(self) -> int:
        """The weights that stay, mapped and copied."""
        return self.weights_mapped_bytes + self.weights_repacked_bytes

    @property
    def anonymous_bytes(self) -> int:
        """What becomes resident of the memory that no file stands behind, at the most."""
        return self.weights_repacked_bytes + self.kv_bytes + self.buffers_bytes

    @property
    def buffers_bytes(self) -> int:
        """The part of it that is neither weights nor KV cache."""
        return self.compute_touched_bytes + self.output_bytes + self.work_bytes + self.vocabulary_bytes

    @property
    def resident_bytes(self) -> int:
        """What is resident while the run computes."""
        return self.weights_mapped_bytes + self.anonymous_bytes

    @property
    def peak_bytes(self) -> int:
        """The most that is ever resident: while computing, or at the end of loading, when the whole file still is."""
        return max(self.resident_bytes, self.weights_file_bytes + self.weights_repacked_bytes)


def memory_need(workload: LlamaWorkload, *, cpu_features: Collection[str]) -> MemoryNeed:
    """Predict the memory of a workload on the CPU backend of a processor with these features.

    The features are those of `repack.CPU_FEATURES` that the engine reports; they decide what is interleaved.

    Raises ArchitectureError: the graph is not known, or an adapter is asked for, whose memory is not predicted.
    """
    if workload.settings.lora_rank is not None:
        raise ArchitectureError(
            f"{workload.weights.name}: lora_rank is {workload.settings.lora_rank}, expected None: the memory of an "
            "adapter is not predicted"
        )
    weights, batches = weight_memory(workload.weights, cpu_features), tuple(_batches(workload))
    return MemoryNeed(
        weights_file_bytes=weights.file_bytes,
        weights_mapped_bytes=weights.mapped_bytes,
        weights_repacked_bytes=weights.repacked_bytes,
        kv_bytes=kv_bytes(workload),
        compute_bytes=compute_bytes(workload),
        compute_touched_bytes=touched_bytes(workload, batches),
        output_bytes=_LOGIT_BYTES * workload.weights.architecture.n_vocab,
        work_bytes=work_bytes(workload, batches),
        vocabulary_bytes=_TOKEN_BYTES * workload.weights.architecture.n_vocab,
    )


def _batches(workload: LlamaWorkload) -> Iterator[Batch]:
    """Yield evaluations that touch as much as any of the run: those of the prompt, and the last of the generation."""
    scenario = workload.scenario
    if scenario.n_prompt:
        yield from workload.batches(Phase.PREFILL)
    if scenario.n_depth:
        n_tokens = min(scenario.n_depth, workload.n_ubatch)
        yield workload.batch(scenario.n_depth, n_tokens=n_tokens)
    if scenario.n_gen:
        yield workload.batch(scenario.n_ctx)

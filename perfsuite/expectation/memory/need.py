"""What a run of llama.cpp on the CPU needs of memory, predicted from the architecture, the types and the settings."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import asdict, dataclass, fields

from perfsuite.errors import ArchitectureError, MeasurementError
from perfsuite.expectation.cases import LlamaWorkload
from perfsuite.expectation.graph import Batch
from perfsuite.expectation.memory.compute_buffer import compute_bytes, touched_bytes
from perfsuite.expectation.memory.kv_memory import kv_bytes
from perfsuite.expectation.memory.weight_memory import weight_memory
from perfsuite.expectation.memory.work_buffer import work_bytes
from perfsuite.records.events import Phase

_LOGIT_BYTES = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryNeed:
    """Predicted bytes; what a process has before it opens a model is measured and no part of this."""

    #: Weights in the file, all of them resident while it is loaded.
    weights_file_bytes: int
    #: The part of the file that stays mapped.
    weights_mapped_bytes: int
    #: Weights that are copied, interleaved, beside it.
    weights_repacked_bytes: int
    kv_bytes: int
    #: The compute buffer as it is reserved, for the largest graph that may come.
    compute_bytes: int
    #: The pages of it that this run's graphs write, which alone become resident.
    compute_touched_bytes: int
    #: One row of logits.
    output_bytes: int
    #: The CPU backend's scratch memory.
    work_bytes: int

    @property
    def weights_bytes(self) -> int:
        """The weights that stay, mapped and copied."""
        return self.weights_mapped_bytes + self.weights_repacked_bytes

    @property
    def total_bytes(self) -> int:
        """What the engine reserves: weights, KV cache, compute buffer, output."""
        return self.weights_bytes + self.kv_bytes + self.compute_bytes + self.output_bytes

    @property
    def anonymous_bytes(self) -> int:
        """What becomes resident of the memory that no file stands behind, at the most."""
        own = self.kv_bytes + self.compute_touched_bytes + self.output_bytes + self.work_bytes
        return self.weights_repacked_bytes + own

    @property
    def resident_bytes(self) -> int:
        """What is resident while the run computes."""
        return self.weights_mapped_bytes + self.anonymous_bytes

    @property
    def peak_bytes(self) -> int:
        """The most that is ever resident: while computing, or at the end of loading, when the whole file still is."""
        return max(self.resident_bytes, self.weights_file_bytes + self.weights_repacked_bytes)

    def to_plain(self) -> dict[str, int]:
        """Return the fields as values that JSON has."""
        return asdict(self)

    @classmethod
    def from_plain(cls, plain: object) -> MemoryNeed:
        """Build from what `to_plain` returned; anything else is a MeasurementError that names what is wrong."""
        names = {field.name for field in fields(cls)}
        if not isinstance(plain, Mapping) or set(plain) != names:
            raise MeasurementError(f"memory need: expected the fields {sorted(names)}, got {plain!r}; measure again")
        for name, value in plain.items():
            if not isinstance(value, int) or isinstance(value, bool) or value < 0:
                raise MeasurementError(f"memory need: {name} is {value!r}, expected bytes of 0 or more; measure again")
        return cls(**plain)


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

"""What sweeps vary around: weights, and what else a workload is made of."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from perfsuite.errors import PerfsuiteError
from perfsuite.expectation.cases import LlamaWorkload, llama_workload
from perfsuite.workload.gguf_metadata import unknown_architecture
from perfsuite.workload.scenario import find_scenario
from perfsuite.workload.weights import resolve


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepSubject:
    """What sweeps vary around."""

    #: A name of the catalogue such as ``smollm2-135m-q8_0``, or the path of a GGUF.
    weights: str
    n_threads: int
    #: What the sweep of threads goes through.
    thread_counts: tuple[int, ...]
    #: Whether lengths are those of real use instead of such as run in seconds.
    is_long: bool
    #: Where synthetic weights are kept.
    cache_dir: Path

    def workload(
        self,
        scenario: str,
        *,
        architecture: str | None = None,
        quantization: str | None = None,
        flash_attn: bool = True,
        type_kv: str = "f16",
    ) -> LlamaWorkload:
        """Return one workload of a sweep, the subject's own but for what is given."""
        weights = resolve(self.weights, cache_dir=self.cache_dir)
        if architecture or quantization:
            name = f"{architecture or self.architecture}-{quantization or self.quantization}"
            weights = resolve(name, cache_dir=self.cache_dir)
        if weights.known_architecture is None:  # its work cannot be counted: said before anything is measured
            raise unknown_architecture(self.weights, weights.gguf_architecture)
        return llama_workload(weights, find_scenario(scenario), flash_attn=flash_attn, type_k=type_kv, type_v=type_kv)

    @property
    def architecture(self) -> str:
        """The architecture's name in the catalogue.

        Raises PerfsuiteError: the weights are a given file, which has one depth and one precision.
        """
        weights = resolve(self.weights, cache_dir=self.cache_dir)
        return weights.name.removesuffix(f"-{self.quantization}")

    @property
    def quantization(self) -> str:
        """The quantisation's name; of a given file the same PerfsuiteError."""
        weights = resolve(self.weights, cache_dir=self.cache_dir)
        if weights.quantization is None:
            raise PerfsuiteError(
                f"--model={self.weights}: a file has one depth, attention and precision; for sweeps of these name "
                "weights of the catalogue, such as smollm2-135m-q8_0"
            )
        return weights.quantization

"""The devices of the paper, with the efficiencies that it assumes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType


@dataclass(frozen=True, slots=True, kw_only=True)
class PaperDevice:
    """A device as Tables 6 and 10 forecast it; None where a table leaves it out."""

    name: str
    flops_per_s: float | None
    bytes_per_s: float | None
    #: Share of the bandwidth that Table 10 assumes, and the variant of Llama2-7B that it decodes.
    memory_efficiency_ratio: float | None
    decode_variant: str | None
    #: Measured time to first token by prompt, in seconds.
    measured_ttft_s: Mapping[int, float]


def _device(
    name: str,
    flops_per_s: float | None,
    bytes_per_s: float | None = None,
    efficiency_ratio: float | None = None,
    variant: str | None = None,
    measured_ttft_s: Mapping[int, float] | None = None,
) -> PaperDevice:
    return PaperDevice(
        name=name,
        flops_per_s=flops_per_s,
        bytes_per_s=bytes_per_s,
        memory_efficiency_ratio=efficiency_ratio,
        decode_variant=variant,
        measured_ttft_s=MappingProxyType(dict(measured_ttft_s or {})),
    )


#: Ryzen 9 HX 370 (CPU), Ryzen AI Max+ 395 (NPU and iGPU) and Tesla V100. *Source*: LIFE, Tables 6 and 10; variants
#: and efficiencies of Table 10 follow from its own throughput and Table 7's memory.
PAPER_DEVICES = (
    _device("CPU", 326.4e9, 240e9, 0.10, "bf16-bf16", {32: 1.85, 256: 14.61, 2048: 186.15}),
    _device("NPU", 50e12),
    _device("iGPU", None, 256e9, 0.50, "bf16-int4"),
    _device("V100", 126e12, 900e9, 0.50, "fp16-fp16"),
)

"""The devices of the paper, with the efficiencies that it assumes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class PaperDevice:
    """A device as Tables 6 and 10 forecast it; None where a table leaves it out."""

    name: str
    flops_per_s: float | None = None
    bytes_per_s: float | None = None
    #: Share of the bandwidth that Table 10 assumes, and the variant of Llama2-7B that it decodes.
    memory_efficiency_ratio: float | None = None
    decode_variant: str | None = None
    #: Measured time to first token by prompt, in seconds.
    measured_ttft_s: Mapping[int, float] = field(default_factory=dict)


#: Ryzen 9 HX 370 (CPU), Ryzen AI Max+ 395 (NPU and iGPU) and Tesla V100. *Source*: LIFE, Tables 6 and 10; variants
#: and efficiencies of Table 10 follow from its own throughput and Table 7's memory.
PAPER_DEVICES = (
    PaperDevice(
        name="CPU",
        flops_per_s=326.4e9,
        bytes_per_s=240e9,
        memory_efficiency_ratio=0.10,
        decode_variant="bf16-bf16",
        measured_ttft_s={32: 1.85, 256: 14.61, 2048: 186.15},
    ),
    PaperDevice(name="NPU", flops_per_s=50e12),
    PaperDevice(name="iGPU", bytes_per_s=256e9, memory_efficiency_ratio=0.50, decode_variant="bf16-int4"),
    PaperDevice(
        name="V100",
        flops_per_s=126e12,
        bytes_per_s=900e9,
        memory_efficiency_ratio=0.50,
        decode_variant="fp16-fp16",
    ),
)

"""What a board has to follow llama.cpp with: found on the board itself, never at the desk."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from perfsuite.measure.engine import Engine
from perfsuite.measure.plan import LlamaPlan
from perfsuite.records.tensor_layout import TensorLayout

if TYPE_CHECKING:
    from perfsuite.measure.opencl_backend import OpenClBackend


class Instruments(Protocol):
    """Each method raises a `PerfsuiteError` where the board lacks something: what, and the remedy."""

    def opencl_backend(self, engine: Engine, platform: str | None) -> OpenClBackend:
        """Find llama.cpp's OpenCL backend for an engine, its device, and the layers that follow it."""

    def tracing_layer(self) -> Path:
        """Find the OpenCL layer that follows any program's commands."""

    def phase_tracer(self, engine: Engine) -> Path:
        """Find the library that wraps llama.cpp's functions."""

    def ebpf_helper(self) -> Path:
        """Find the program that traces with eBPF, where the kernel and the user allow it."""

    def tensor_layout(self, engine: Engine) -> TensorLayout:
        """Say where an engine's tensors have their fields, which a log of eBPF is read by."""

    def cpu_features(self, plan: LlamaPlan) -> tuple[str, ...]:
        """Say which of the processor's features an engine was built for, and finds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalInstruments:
    """Those of this machine."""

    cache_dir: Path

    def opencl_backend(self, engine: Engine, platform: str | None) -> OpenClBackend:
        """Find the backend, its device and its layers."""
        from perfsuite.measure import opencl_backend  # starts a process, and needs what few installs have

        return opencl_backend.set_up_opencl(engine, platform, self.cache_dir)

    def tracing_layer(self) -> Path:
        """Find the layer, or build it."""
        from perfsuite.measure.opencl_backend import find_opencl_layers  # as above

        return find_opencl_layers(self.cache_dir).tracing

    def phase_tracer(self, engine: Engine) -> Path:
        """Find the tracer, or build it."""
        from perfsuite.measure.native import build_phase_tracer  # as above

        return build_phase_tracer(engine, self.cache_dir)

    def ebpf_helper(self) -> Path:
        """Find the helper, or build it."""
        from perfsuite.measure import ebpf_helper  # as above

        return ebpf_helper.find_helper(self.cache_dir)

    def tensor_layout(self, engine: Engine) -> TensorLayout:
        """Ask the engine's headers."""
        from perfsuite.measure.tensor_layout import tensor_layout  # as above

        return tensor_layout(engine, self.cache_dir)

    def cpu_features(self, plan: LlamaPlan) -> tuple[str, ...]:
        """Ask the engine in a process of its own."""
        from perfsuite.measure.engine_memory import engine_cpu_features  # as above

        return engine_cpu_features(plan)

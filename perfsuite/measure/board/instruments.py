"""What a board has to follow llama.cpp with: found on the board itself, never at the desk."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from perfsuite.errors import LinkError, MeasurementError, PerfsuiteError
from perfsuite.measure.engine import Engine
from perfsuite.measure.plan import LlamaPlan
from perfsuite.records.tensor_layout import TensorLayout

if TYPE_CHECKING:
    from perfsuite.measure.opencl_backend import OpenClBackend

_Found = TypeVar("_Found")


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


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteInstruments:
    """Those of a board at the end of a link; what it lacks is reported with its name."""

    name: str
    #: Asks for those of the program there.
    use: Callable[[Callable[[Instruments], Any]], Any]

    def opencl_backend(self, engine: Engine, platform: str | None) -> OpenClBackend:
        """Find the backend, its device and its layers."""
        return self._found(lambda there: there.opencl_backend(engine, platform))

    def tracing_layer(self) -> Path:
        """Find the layer."""
        return self._found(lambda there: there.tracing_layer())

    def phase_tracer(self, engine: Engine) -> Path:
        """Find the tracer."""
        return self._found(lambda there: there.phase_tracer(engine))

    def ebpf_helper(self) -> Path:
        """Find the helper."""
        return self._found(lambda there: there.ebpf_helper())

    def tensor_layout(self, engine: Engine) -> TensorLayout:
        """Ask the engine's own library."""
        return self._found(lambda there: there.tensor_layout(engine))

    def cpu_features(self, plan: LlamaPlan) -> tuple[str, ...]:
        """Ask the engine's own library."""
        return self._found(lambda there: there.cpu_features(plan))

    def _found(self, find: Callable[[Instruments], _Found]) -> _Found:
        try:
            found: _Found = self.use(find)
        except LinkError:
            raise
        except PerfsuiteError as error:
            raise on_board(self.name, error) from None
        return found


def on_board(name: str, error: PerfsuiteError) -> PerfsuiteError:
    """Return an error of a board's as one that names the board."""
    if str(error).startswith(f"{name}: "):
        return error
    text = f"{name}: {error}"
    try:
        return type(error)(text)
    except TypeError:  # one that carries more than its text
        return MeasurementError(text)

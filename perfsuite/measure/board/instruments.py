"""What a board has to follow llama.cpp with: found or built there, never at the desk."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from perfsuite.errors import LinkError, MeasurementError, PerfsuiteError
from perfsuite.measure.board.frames import understood
from perfsuite.measure.engine import Engine
from perfsuite.measure.plan import LlamaPlan, dump_plan, load_plan
from perfsuite.records.tensor_layout import TensorLayout

if TYPE_CHECKING:
    from perfsuite.measure.opencl_backend import OpenClBackend

_Read = TypeVar("_Read")


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


#: The name of the request, which names the instrument.
INSTRUMENT = "instrument"

#: How a request asks for each, by the name of the method: with `engine`, `platform` or `plan` as the method has them.
_ANSWERS: Mapping[str, Callable[[Instruments, Mapping[str, Any]], Any]] = {
    "opencl_backend": lambda board, asked: board.opencl_backend(_engine(asked), asked["platform"]).to_plain(),
    "tracing_layer": lambda board, _: str(board.tracing_layer()),
    "phase_tracer": lambda board, asked: str(board.phase_tracer(_engine(asked))),
    "ebpf_helper": lambda board, _: str(board.ebpf_helper()),
    "tensor_layout": lambda board, asked: board.tensor_layout(_engine(asked)).to_plain(),
    "cpu_features": lambda board, asked: list(board.cpu_features(load_llama_plan(asked))),
}


def answered_instrument(instruments: Instruments, asked: Mapping[str, Any]) -> Any:
    """Answer a request for an instrument; `MeasurementError` for one that is not known."""
    name = asked["name"]
    if name not in _ANSWERS:
        raise MeasurementError(f"the agent was asked for the instrument {name!r}; known are {', '.join(_ANSWERS)}")
    return _ANSWERS[name](instruments, asked)


def _engine(asked: Mapping[str, Any]) -> Engine:
    return Engine.from_plain(asked["engine"])


def load_llama_plan(asked: Mapping[str, Any]) -> LlamaPlan:
    """Read the plan of a request; `MeasurementError` for one of another kind."""
    plan = load_plan(asked["plan"])
    if not isinstance(plan, LlamaPlan):
        raise MeasurementError(f"an engine was asked for with a {type(plan).__name__}")
    return plan


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteInstruments:
    """Those of a board at the end of a link; what it lacks is reported with its name."""

    name: str
    #: Asks the agent there.
    ask: Callable[[str, Mapping[str, Any]], Any]

    def opencl_backend(self, engine: Engine, platform: str | None) -> OpenClBackend:
        """Let the agent find the backend, its device and its layers."""
        from perfsuite.measure.opencl_backend import OpenClBackend  # as in `LocalInstruments`

        asked = {"engine": engine.to_plain(), "platform": platform}
        return self._found("opencl_backend", OpenClBackend.from_plain, asked)

    def tracing_layer(self) -> Path:
        """Let the agent find the layer."""
        return self._found("tracing_layer", Path, {})

    def phase_tracer(self, engine: Engine) -> Path:
        """Let the agent find the tracer."""
        return self._found("phase_tracer", Path, {"engine": engine.to_plain()})

    def ebpf_helper(self) -> Path:
        """Let the agent find the helper."""
        return self._found("ebpf_helper", Path, {})

    def tensor_layout(self, engine: Engine) -> TensorLayout:
        """Let the agent ask the engine's headers."""
        return self._found("tensor_layout", TensorLayout.from_plain, {"engine": engine.to_plain()})

    def cpu_features(self, plan: LlamaPlan) -> tuple[str, ...]:
        """Let the agent ask the engine."""
        return self._found("cpu_features", tuple, {"plan": dump_plan(plan)})

    def _found(self, name: str, read: Callable[[Any], _Read], asked: Mapping[str, Any]) -> _Read:
        try:
            plain = self.ask(INSTRUMENT, {"name": name, **asked})
        except LinkError:
            raise
        except PerfsuiteError as error:
            raise on_board(self.name, error) from None
        return understood(INSTRUMENT, read, plain)


def on_board(name: str, error: PerfsuiteError) -> PerfsuiteError:
    """Return an error of a board's as one that names the board."""
    if str(error).startswith(f"{name}: "):
        return error
    text = f"{name}: {error}"
    try:
        return type(error)(text)
    except TypeError:  # one that carries more than its text
        return MeasurementError(text)

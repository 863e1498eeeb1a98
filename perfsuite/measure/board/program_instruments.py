"""What a board has to follow llama.cpp with: its bundle brings it, and its program tells."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

from perfsuite.errors import EngineError, LinkError, MeasurementError, NativeBuildError, PerfsuiteError
from perfsuite.expectation.memory.need import CPU_FEATURES
from perfsuite.measure.board.frames import understood
from perfsuite.measure.ebpf_helper import (
    HELPER_FOLDER,
    HELPER_NAME,
    PROTOCOL_VERSION,
    machine_obstacle,
)
from perfsuite.measure.engine import Engine
from perfsuite.measure.native import PHASE_TRACER_LIBRARY
from perfsuite.measure.plan import LlamaPlan
from perfsuite.records.tensor_layout import TensorLayout

if TYPE_CHECKING:
    from perfsuite.measure.board.bundled_opencl import BundledOpenCl
    from perfsuite.measure.board.remote_board import RemoteBoard
    from perfsuite.measure.opencl_backend import OpenClBackend

_P = ParamSpec("_P")
_Found = TypeVar("_Found")

#: What is given to the program that root installs.
_CAPABILITIES = "cap_bpf,cap_perfmon=ep"


def _found(method: Callable[Concatenate[Any, _P], _Found]) -> Callable[Concatenate[Any, _P], _Found]:
    """Ask the board, over a link that came back once more, and name it in what is missing there."""

    @wraps(method)
    def found(own: ProgramInstruments, /, *args: _P.args, **named: _P.kwargs) -> _Found:
        try:
            return own.board.asked("instrument", lambda: method(own, *args, **named))
        except LinkError:
            raise
        except PerfsuiteError as error:
            raise own.board.named(error) from None

    return found


@dataclass(kw_only=True)
class ProgramInstruments:
    """`Instruments` of one board; what an engine says of itself is asked once."""

    board: RemoteBoard
    _described: dict[str, Mapping[str, Any]] = field(default_factory=dict)

    @_found
    def opencl_backend(self, engine: Engine, platform: str | None) -> OpenClBackend:
        """Return the backend that is beside the suite's own library for an engine."""
        return self._opencl().backend(engine, self.board.engines.own_library(engine).parent, platform)

    @_found
    def tracing_layer(self) -> Path:
        """Return the layer of the bundle."""
        return self._opencl().tracing_layer()

    @_found
    def phase_tracer(self, engine: Engine) -> Path:
        """Return the tracer of an engine's functions, which is beside the suite's own library for it."""
        folder = self.board.engines.own_library(engine).parent
        if PHASE_TRACER_LIBRARY not in self.board.engines.digests(folder):
            raise NativeBuildError(f"{folder}: holds no {PHASE_TRACER_LIBRARY}; {_SET_UP}")
        return folder / PHASE_TRACER_LIBRARY

    @_found
    def tensor_layout(self, engine: Engine) -> TensorLayout:
        """Return where an engine's tensors have their fields, as its own library there says."""
        return self.layout_in(str(engine.library_dir))

    @_found
    def cpu_features(self, plan: LlamaPlan) -> tuple[str, ...]:
        """Return which of the processor's features an engine was built for, and finds."""
        return tuple(self._description(plan.library_dir)["features"])

    @_found
    def ebpf_helper(self) -> Path:
        """Return the helper there that root installed, or for root the one of the bundle; raises as `find_helper`."""
        facts = self.board.program.ask("recorder_facts")
        return Path(understood("recorder_facts", _chosen_helper, facts))

    def layout_in(self, library_dir: str) -> TensorLayout:
        """Return where the tensors of the engine in a folder have their fields."""
        told = self._description(library_dir)
        return TensorLayout.from_plain({**told["layout"], "build_id": told["build_id"]})

    def _description(self, library_dir: str) -> Mapping[str, Any]:
        if library_dir not in self._described:
            own = self.board.engines.own_libraries.get(library_dir)
            options = [f"--engine-library={own}"] if own else []
            said = self.board.program.ask("describe_engine", {"options": options, "features": list(CPU_FEATURES)})
            self._described[library_dir] = understood("describe_engine", _read_description, said)
        return self._described[library_dir]

    def _opencl(self) -> BundledOpenCl:
        from perfsuite.measure.board.bundled_opencl import BundledOpenCl  # few runs are of OpenCL
        from perfsuite.measure.board.runs import run_bare

        program = self.board.program
        return BundledOpenCl(
            name=self.board.name,
            bundle=program.bundle,
            cache_dir=program.cache_dir,
            digests=self.board.engines.digests,
            run=partial(run_bare, self.board),
        )


_SET_UP = "run 'perfsuite devices setup' with the device's name"


def _read_description(plain: Any) -> Mapping[str, Any]:
    output = bytes(plain["output"]).decode("utf-8", "replace")
    try:
        told: Mapping[str, Any] = json.loads(output)
        return {name: told[name] for name in ("layout", "build_id", "features")}
    except (ValueError, LookupError, TypeError):
        raise EngineError(
            f"the llama.cpp there does not say how it is built: {output.strip()[:200]}; {_SET_UP}"
        ) from None


def _chosen_helper(facts: Any) -> str:
    """Return the first program that may be used; raises with the one thing that is missing, and its remedy."""
    obstacle = machine_obstacle(
        has_types=bool(facts["has_kernel_types"]),
        has_uprobes=bool(facts["has_uprobes"]),
        pid_namespace=str(facts["pid_namespace"]),
    )
    if obstacle:
        raise MeasurementError(f"eBPF cannot be used there: {obstacle}")
    installed, bundled = facts["programs"]
    usable = (installed, bundled) if facts["user"] == "root" else (installed,)
    for each in usable:
        if each["is_roots_alone"] and _is_this_version(each):
            return str(each["path"])
    if not bundled["is_file"]:
        raise MeasurementError(
            f"the bundle has no {HELPER_NAME}: clang, bpftool or libbpf for the board were missing where it was made; "
            f"run 'make ebpf' and {_SET_UP}"
        )
    to = shlex.quote(str(HELPER_FOLDER / HELPER_NAME))
    raise MeasurementError(
        f"no CAP_BPF for user {facts['user']}: sudo install -D -o root -g root -m 755 "
        f"{shlex.quote(str(bundled['path']))} {to} && sudo setcap {_CAPABILITIES} {to}"
    )


def _is_this_version(program: Mapping[str, Any]) -> bool:
    return str(program["version"]).split() == [HELPER_NAME, str(PROTOCOL_VERSION)]

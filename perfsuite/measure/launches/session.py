"""One plan's way to the native worker: launches are written down, run, and their outputs judged, each once."""

from __future__ import annotations

import hashlib
import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from perfsuite.errors import MeasurementError, OpenClError
from perfsuite.measure.engine_store import KERNELS_DIR
from perfsuite.measure.kernel_launches import CPU_TUNING, GPU_TUNING, DescribedLaunch, LaunchForm, describe
from perfsuite.measure.kernel_references import error_norm
from perfsuite.measure.launches.plan import (
    DeviceLimits,
    LaunchesPlan,
    LaunchProgram,
    LaunchStep,
    PlannedLaunch,
    StepKind,
    device_of,
)
from perfsuite.measure.opencl_platform import OpenClDevice
from perfsuite.measure.plan import Plan
from perfsuite.records.whole_file import write_whole_bytes
from perfsuite.workload.kernel_catalog import STANDARD_KERNELS, KernelCase

#: Most outputs of a case that are known by their digests: a kernel that never computes the same twice has no more.
_MOST_KNOWN = 16


@dataclass(kw_only=True)
class JudgedOutputs:
    """By case and seed: how far each output that has arrived is from the reference, by its SHA-256."""

    _found: dict[tuple[str, int], dict[str, float]] = field(default_factory=lambda: defaultdict(dict))

    def known(self, case: KernelCase, seed: int) -> tuple[str, ...]:
        return tuple(self._found[case.case_id, seed])

    def deviation(self, case: KernelCase, seed: int, told: Mapping[str, Any]) -> float:
        """Return the error norm of what a launch has told of its output; infinite where it wrote behind that.

        Raises `MeasurementError` where the output did not arrive whole.
        """
        if not told["is_guard_whole"]:
            return math.inf
        digest, known = str(told["sha256"]), self._found[case.case_id, seed]
        if digest not in known and told["output"] is not None:
            while len(known) >= _MOST_KNOWN:
                del known[next(iter(known))]
            known[digest] = _judged(case, seed, told["output"], digest)
        return known[digest]


def _judged(case: KernelCase, seed: int, output: bytes, digest: str) -> float:
    if len(output) != case.written_bytes or hashlib.sha256(output).hexdigest() != digest:
        raise MeasurementError(
            f"{case.case_id}: its output arrived with {len(output)} bytes, expected {case.written_bytes} with SHA-256 "
            f"{digest[:16]}; measure again"
        )
    expected = describe(case, CPU_TUNING, seed).expected  # no tuning changes what is to be computed
    return error_norm(np.frombuffer(output, np.float32).reshape(expected.shape), expected)


#: A process of one round launches each kernel so often at least, one of several each side of it in each round.
_MIN_REPETITIONS, _MIN_TURNS = 5, 2
#: Rounds that are taken whatever they cost.
_MIN_ROUNDS = 6
#: Launches after the verified one, of which the last says how long a kernel takes.
_WARM_UP_LAUNCHES = 2


@dataclass(kw_only=True)
class LaunchWriter:
    """Writes down launches of cases on a device, and the steps that are taken with them."""

    device: OpenClDevice
    seed: int
    outputs: JudgedOutputs
    #: Which description each launch is made from, by its place.
    described: list[DescribedLaunch] = field(default_factory=list)
    _programs: dict[LaunchProgram, int] = field(default_factory=dict)
    _launches: list[PlannedLaunch] = field(default_factory=list)
    _steps: list[LaunchStep] = field(default_factory=list)

    def launch(self, case: KernelCase, read: Callable[[str], str], beside: int | None = None) -> int:
        """Add a launch of a case, of sources that are read by their names; return its place."""
        described = describe(case, CPU_TUNING if self.device.is_cpu else GPU_TUNING, self.seed)
        source = "\n".join(map(read, (*described.preludes, described.source)))
        self.described.append(described)
        return self.planned(
            PlannedLaunch(
                name=case.case_id,
                program=self.program(source, described.build_options),
                entry=described.entry,
                contents=described.contents if beside is None else (),
                n_outputs=case.written_bytes // 4,
                beside=beside,
                scalars=tuple(scalar.tobytes() for scalar in described.scalars),
                global_size=described.global_size,
                local_size=described.local_size,
            )
        )

    def program(self, source: str, options: Sequence[str]) -> int:
        return self._programs.setdefault(LaunchProgram(source=source, options=" ".join(options)), len(self._programs))

    def planned(self, launch: PlannedLaunch) -> int:
        self._launches.append(launch)
        return len(self._launches) - 1

    def output(self, case: KernelCase, launch: int) -> int:
        """Add a launch whose output is answered; return the step's place."""
        return self.step(
            LaunchStep(kind=StepKind.OUTPUT, launches=(launch,), known_outputs=self.outputs.known(case, self.seed))
        )

    def turns(
        self, launches: tuple[int, ...], repetitions: int, leaders: tuple[tuple[int, ...], ...], budget_ns: int
    ) -> int:
        """Add kernels that are timed in rounds, their sides taking turns; return the step's place."""
        return self.step(
            LaunchStep(
                kind=StepKind.TURNS,
                launches=launches,
                n_launches=repetitions,
                n_warm_up=_WARM_UP_LAUNCHES,
                n_turns=_MIN_REPETITIONS if len(leaders) == 1 else _MIN_TURNS,
                leaders=leaders,
                n_least=_MIN_ROUNDS,
                budget_ns=budget_ns,
            )
        )

    def burst(self, launch: int, n_launches: int) -> int:
        """Add launches between two finishes; return the step's place."""
        return self.step(LaunchStep(kind=StepKind.BURST, launches=(launch,), n_launches=n_launches))

    def plan(self, *, cache_dir: str, n_threads: int | None, built_dir: str | None = None) -> LaunchesPlan:
        return LaunchesPlan(
            **device_of(self.device),
            programs=tuple(self._programs),
            launches=tuple(self._launches),
            steps=tuple(self._steps),
            built_dir=built_dir,
            n_threads=n_threads,
            cache_dir=cache_dir,
        )

    def step(self, step: LaunchStep) -> int:
        self._steps.append(step)
        return len(self._steps) - 1


#: Runs a plan by the native worker and returns its payload.
RunPlan = Callable[[Plan], Mapping[str, Any]]
#: Returns the content of a file of the board's.
ReadThere = Callable[[Path], bytes]


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchSession:
    """A device, and who launches on it."""

    device: OpenClDevice
    limits: DeviceLimits
    run: RunPlan
    outputs: JudgedOutputs
    read_there: ReadThere
    #: Where logs of failed builds go, on this machine.
    log_dir: Path
    #: Where the worker's libraries are, on the board.
    cache_dir: str

    def writer(self, seed: int) -> LaunchWriter:
        return LaunchWriter(device=self.device, seed=seed, outputs=self.outputs)

    def launched(
        self, writer: LaunchWriter, *, n_threads: int | None = None, built_dir: str | None = None
    ) -> Mapping[str, Any]:
        """Run what was written; raises `MeasurementError` where a kernel does not build, naming the log."""
        told = self.run(writer.plan(cache_dir=self.cache_dir, n_threads=n_threads, built_dir=built_dir))
        if (failed := told.get("unbuilt")) is None:
            return told
        raise unbuilt_error(writer.described[failed["launch"]], self.device, self.log_dir, failed["log"])

    def old_source(self, folder: Path, name: str) -> str:
        """Return the text of a file of kernels on the board; `OpenClError` where it is none."""
        try:
            return self.read_there(folder / name).decode("utf-8")
        except UnicodeDecodeError:
            raise OpenClError(f"{folder / name}: is not a text; expected the kernels' sources there") from None


def kept_log(log_dir: Path, name: str, device: OpenClDevice, log: str) -> Path:
    """Keep the log of a build that failed, and return where."""
    path = log_dir / f"{name}.build.log"
    write_whole_bytes(path, f"device: {device.device_name}\n{log}\n".encode(), MeasurementError)
    return path


def unbuilt_error(launch: LaunchForm, device: OpenClDevice, log_dir: Path, log: str) -> MeasurementError:
    """Keep the log of a kernel that does not build, and return the error that names it."""
    path = kept_log(log_dir, f"{Path(launch.source).stem}-{launch.entry}", device, log)
    where = f"kernel {launch.entry} of {launch.source}"
    return MeasurementError(f"{where} does not build for {device.device_name}; see {path}")


def own_source(name: str) -> str:
    """Return the text of a file of the suite's own kernels."""
    return (KERNELS_DIR / name).read_text(encoding="utf-8")


def standard_kernels(case_ids: Sequence[str]) -> tuple[KernelCase, ...]:
    """Return the cases of the catalogue that these ids name, in its order."""
    return tuple(case for case in STANDARD_KERNELS if case.case_id in case_ids)

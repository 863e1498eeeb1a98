"""The suite's own kernels as launches, written down for the native worker."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from perfsuite.measure.kernel_launches import CPU_TUNING, GPU_TUNING, DescribedLaunch, describe
from perfsuite.measure.launches.plan import LaunchesPlan, LaunchProgram, LaunchStep, PlannedLaunch, StepKind
from perfsuite.measure.opencl_platform import OpenClDevice
from perfsuite.workload.kernel_catalog import KernelCase

#: A process of one round launches each kernel so often at least, one of several each side of it in each round.
_MIN_REPETITIONS, _MIN_TURNS = 5, 2
#: Rounds that are taken whatever they cost.
_MIN_ROUNDS = 6
#: Launches after the verified one, of which the last says how long a kernel takes.
_WARM_UP_LAUNCHES = 2

#: Returns the text of a file of kernels by its name.
ReadSource = Callable[[str], str]

#: Returns SHA-256 of those outputs of a case whose deviation is known.
KnownOutputs = Callable[[KernelCase], tuple[str, ...]]


@dataclass(kw_only=True)
class LaunchWriter:
    """Writes down launches of cases on a device, and the steps that are taken with them."""

    device: OpenClDevice
    seed: int
    known: KnownOutputs
    #: Which description each launch is made from, by its place.
    described: list[DescribedLaunch] = field(default_factory=list)
    _programs: dict[LaunchProgram, int] = field(default_factory=dict)
    _launches: list[PlannedLaunch] = field(default_factory=list)
    _steps: list[LaunchStep] = field(default_factory=list)

    def launch(self, case: KernelCase, read: ReadSource, beside: int | None = None) -> int:
        """Add a launch of a case, of a source; return its place."""
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
        """Return the place of a program, which is built once."""
        return self._programs.setdefault(LaunchProgram(source=source, options=" ".join(options)), len(self._programs))

    def planned(self, launch: PlannedLaunch) -> int:
        """Add a launch; return its place."""
        self._launches.append(launch)
        return len(self._launches) - 1

    def output(self, case: KernelCase, launch: int) -> int:
        """Add a launch whose output is answered; return the step's place."""
        return self.step(LaunchStep(kind=StepKind.OUTPUT, launches=(launch,), known_outputs=self.known(case)))

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
        """Return the plan of all that was added."""
        return LaunchesPlan(
            platform_index=self.device.platform_index,
            device_index=self.device.device_index,
            platform_name=self.device.platform_name,
            device_name=self.device.device_name,
            programs=tuple(self._programs),
            launches=tuple(self._launches),
            steps=tuple(self._steps),
            built_dir=built_dir,
            n_threads=n_threads,
            cache_dir=cache_dir,
        )

    def step(self, step: LaunchStep) -> int:
        """Add a step; return its place."""
        self._steps.append(step)
        return len(self._steps) - 1

"""Reduces one process's OpenCL commands to time by operator and by kernel, for each occurrence of a phase."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from perfsuite.records.events import EngineRecord, Phase, Span
from perfsuite.records.opencl_commands import CommandType
from perfsuite.trace.opencl.device_clock import AlignedTrace
from perfsuite.trace.opencl.kernel_mapping import KernelMapping, phase_spans
from perfsuite.trace.opencl.kernel_statistics import occupied_times
from perfsuite.trace.samples import TracedPhase


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelPhase:
    """One occurrence of a phase with the kernels that it enqueued."""

    traced: TracedPhase
    #: Execution by kernel, launches summed, ns.
    kernel_ns: Mapping[str, int]
    #: Why the occurrence cannot be counted; empty where it can.
    problem: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class MappedRun:
    """One process, mapped."""

    phases: Mapping[Phase, tuple[KernelPhase, ...]]
    problems: tuple[str, ...] = field(default=())


def map_run(record: EngineRecord, aligned: AlignedTrace, mapping: KernelMapping) -> MappedRun:
    """Give the commands of each prefill and decode step to its operators.

    An operator lasts as long as its kernels occupy the queue: from the END of the command before them to their own. A
    step whose sequence of kernels was never learnt, or one of whose commands has no sound times, has a problem.
    """
    occupied_ns, is_known = occupied_times(aligned)
    places = _Places(aligned=aligned, occupied_ns=occupied_ns, is_known=is_known)
    phases = {
        phase: tuple(_mapped(places, mapping, span) for span in phase_spans(record, phase))
        for phase in (Phase.PREFILL, Phase.DECODE)
    }
    found = {phase: each for phase, each in phases.items() if each}
    return MappedRun(phases=found, problems=tuple(_problems(aligned, found)))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Places:
    aligned: AlignedTrace
    occupied_ns: npt.NDArray[np.int64]
    is_known: npt.NDArray[np.bool_]

    def kernels(self, span: Span) -> npt.NDArray[np.intp]:
        """Return the positions of the kernels that were enqueued during a span."""
        commands = self.aligned.trace.commands
        first, last = np.searchsorted(commands["host_start_ns"], (span.start_ns, span.end_ns))
        here = np.arange(first, last)
        kernels: npt.NDArray[np.intp] = here[commands["type"][here] == CommandType.KERNEL]
        return kernels


def _mapped(places: _Places, mapping: KernelMapping, span: Span) -> KernelPhase:
    here = places.kernels(span)
    commands, names = places.aligned.trace.commands, places.aligned.trace.names
    kernels = tuple(names[each] for each in commands["name"][here])
    roles = mapping.roles_of(span.phase, kernels)
    role_ns: dict[str, int] = defaultdict(int)
    kernel_ns: dict[str, int] = defaultdict(int)
    for position, kernel, role in zip(here.tolist(), kernels, roles or [""] * len(kernels), strict=True):
        role_ns[role] += int(places.occupied_ns[position])
        kernel_ns[kernel] += int(commands["end_ns"][position] - commands["start_ns"][position])
    return KernelPhase(
        traced=TracedPhase(span=span, role_ns=dict(role_ns) if roles else {}),
        kernel_ns=dict(kernel_ns),
        problem=_problem(places, here, roles is not None),
    )


def _problem(places: _Places, here: npt.NDArray[np.intp], is_learnt: bool) -> str:
    if not here.size:
        return "no kernel was enqueued"
    if not is_learnt:
        return "its kernels are another sequence than any that was learnt"
    if n_unsound := int((~places.aligned.is_sound[here]).sum()):
        return f"{n_unsound} of {here.size} kernels have no sound times"
    if not places.is_known[here].all():
        return "a command before one of its kernels is not known"
    return ""


def _problems(aligned: AlignedTrace, phases: Mapping[Phase, tuple[KernelPhase, ...]]) -> Iterator[str]:
    """Say once what is wrong with a run, and how often."""
    if aligned.trace.n_lost:
        yield f"the OpenCL layer lost {aligned.trace.n_lost} commands"
    for phase, occurrences in phases.items():
        wrong = [each.problem for each in occurrences if each.problem]
        if wrong:
            yield f"{phase.value}: {wrong[0]} ({len(wrong)} of {len(occurrences)} times)"

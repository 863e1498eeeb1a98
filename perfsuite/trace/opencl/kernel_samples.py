"""Reduces one process's OpenCL commands to time by operator and by kernel, for each occurrence of a phase."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from math import pi, sqrt
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from perfsuite.records.engine_trace import Times
from perfsuite.records.events import GRAPH_PHASES, EngineRecord, Phase
from perfsuite.trace.opencl.device_clock import AlignedTrace, Durations
from perfsuite.trace.opencl.kernel_mapping import KernelMapping, kernels_in, phase_spans
from perfsuite.trace.opencl.kernel_statistics import occupied_times
from perfsuite.trace.opencl.stamps import MOST_DROPPED_RATIO, MOST_TICK_ERROR_RATIO, Mask, anomaly_text, tick_error_ns
from perfsuite.trace.samples import TracedPhase


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelPhase:
    """One occurrence of a phase with the kernels that it enqueued."""

    traced: TracedPhase
    #: Execution by kernel, launches summed, ns; the mean of the others stands for those that were dropped.
    kernel_ns: Mapping[str, int]
    #: Why nothing that its kernels sum to can be counted; empty where it can.
    problem: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class MappedRun:
    """One process, mapped."""

    phases: Mapping[Phase, tuple[KernelPhase, ...]]
    #: Why no operator and no kernel can be counted. A phase always can: its clock is the host's.
    problems: tuple[str, ...] = field(default=())
    #: Why one operator, or one kernel, cannot, by phase and name.
    operator_problems: Mapping[tuple[Phase, str], str] = field(default_factory=dict)
    kernel_problems: Mapping[tuple[Phase, str], str] = field(default_factory=dict)
    #: By phase and kernel: by how much its time may be off, over it, for the tick of the device's clock.
    error_ratio: Mapping[tuple[Phase, str], float] = field(default_factory=dict)
    #: What is odd about the times that the driver gave, one line a device.
    notes: tuple[str, ...] = ()


def map_run(record: EngineRecord, aligned: AlignedTrace, mapping: KernelMapping) -> MappedRun:
    """Give the commands of each prefill and decode step to its operators.

    An operator lasts as long as its kernels occupy the queue: from the END of the command before them to their own. A
    step whose sequence of kernels was never learnt makes all of a run's operators and kernels a problem; launches whose
    times cannot be right only those that have more of them than `MOST_DROPPED_RATIO`.
    """
    occupied = occupied_times(aligned)
    found = {phase: _MappedPhase(record, aligned, mapping, phase, occupied) for phase in GRAPH_PHASES}
    mapped = {phase: each for phase, each in found.items() if each.spans}
    phases = {phase: tuple(each.occurrences()) for phase, each in mapped.items()}
    return MappedRun(
        phases=phases,
        problems=tuple(_problems(aligned, phases)),
        operator_problems={(phase, role): text for phase, each in mapped.items() for role, text in each.operators()},
        kernel_problems={(phase, name): text for phase, each in mapped.items() for name, text in each.kernels()},
        error_ratio={(phase, name): ratio for phase, each in mapped.items() for name, ratio in each.errors.items()},
        notes=tuple(_notes(aligned)),
    )


class _MappedPhase:
    """All occurrences of one phase; the arrays have one place a launch."""

    def __init__(
        self,
        record: EngineRecord,
        aligned: AlignedTrace,
        mapping: KernelMapping,
        phase: Phase,
        occupied: Durations,
    ) -> None:
        self.spans = phase_spans(record, phase)
        self._aligned = aligned
        here = [kernels_in(aligned.trace.commands, span) for span in self.spans]
        self._at = np.concatenate([np.empty(0, np.intp), *here])
        names = aligned.trace.names
        self._names = [names[each] for each in aligned.trace.commands["name"][self._at].tolist()]
        bounds = np.cumsum([0, *(each.size for each in here)]).tolist()
        self._parts = [slice(first, last) for first, last in pairwise(bounds)]
        self._learnt = [mapping.roles_of(phase, tuple(self._names[part])) for part in self._parts]
        self._roles = [
            role for part, learnt in zip(self._parts, self._learnt, strict=True) for role in _of(learnt, part)
        ]
        self._executed = self._filled(aligned.execution, self._names)
        self._occupied = self._filled(occupied, self._roles)
        self.errors = dict(self._tick_errors())

    def occurrences(self) -> Iterator[KernelPhase]:
        for span, part, learnt in zip(self.spans, self._parts, self._learnt, strict=True):
            role_ns = _sums(self._roles[part], self._occupied.times_ns[part])
            yield KernelPhase(
                traced=TracedPhase(span=span, role_ns=role_ns if learnt is not None else {}),
                kernel_ns=_sums(self._names[part], self._executed.times_ns[part]),
                problem=_problem(part, is_learnt=learnt is not None),
            )

    def operators(self) -> Iterator[tuple[str, str]]:
        for role, n_unknown in self._occupied.n_unknown.items():
            of_role = self._at[[each == role for each in self._roles]]
            yield (
                role,
                f"of {n_unknown} of {of_role.size} launches it is not known from when to when they occupy the queue "
                f"({anomaly_text(self._aligned.anomalies[of_role])})",
            )

    def kernels(self) -> Iterator[tuple[str, str]]:
        for name, n_unknown in self._executed.n_unknown.items():
            of_kernel = self._at[[each == name for each in self._names]]
            odd = anomaly_text(self._aligned.anomalies[of_kernel])
            yield name, f"{n_unknown} of {of_kernel.size} launches have a START or an END that cannot be right ({odd})"
        for name, ratio in self.errors.items():
            if ratio > MOST_TICK_ERROR_RATIO and name not in self._executed.n_unknown:
                yield (
                    name,
                    f"{self._executed.n_known[name]} launches, timed by a clock that ticks every "
                    f"{self._tick_ns() or '?'} ns, leave more than {100 * MOST_TICK_ERROR_RATIO:g} % of it unknown",
                )

    def _tick_errors(self) -> Iterator[tuple[str, float]]:
        """Yield each kernel with what the tick leaves unknown of the median of its steps.

        A median scatters sqrt(pi / 2) times as much as a mean, and one of sums of ticks is off by half a tick besides.
        """
        tick_ns = self._tick_ns()
        totals_ns = _sums(self._names, self._executed.times_ns)
        for name, total_ns in totals_ns.items():
            n_known = self._executed.n_known[name]
            if total_ns and n_known:
                of_mean_ns = tick_error_ns(tick_ns, n_known) * self._names.count(name)
                of_sums_ns = (tick_ns or 0) / 2 * len(self.spans)
                yield name, (sqrt(pi / 2) * of_mean_ns + of_sums_ns) / total_ns
            elif n_known:
                yield name, float("inf")

    def _tick_ns(self) -> int | None:
        devices = self._aligned.device[self._at]
        return self._aligned.tick_ns(int(devices[0])) if devices.size else None

    def _filled(self, times: Durations, counted: Sequence[str]) -> FilledTimes:
        times_ns, is_known = (each[self._at] for each in times)
        return filled(times_ns, is_known, list(zip(self._roles, self._names, strict=True)), counted)


def _of(learnt: tuple[str, ...] | None, part: slice) -> Sequence[str]:
    return learnt if learnt is not None else [""] * (part.stop - part.start)


def _sums(keys: Sequence[str], times_ns: npt.NDArray[np.int64]) -> dict[str, int]:
    summed: dict[str, int] = defaultdict(int)
    for key, time_ns in zip(keys, times_ns.tolist(), strict=True):
        summed[key] += time_ns
    return dict(summed)


def _problem(part: slice, *, is_learnt: bool) -> str:
    if part.start == part.stop:
        return "no kernel was enqueued"
    return "" if is_learnt else "its kernels are another sequence than any that was learnt"


def _problems(aligned: AlignedTrace, phases: Mapping[Phase, tuple[KernelPhase, ...]]) -> Iterator[str]:
    """Say once what is wrong with a run, and how often."""
    if aligned.trace.n_lost:
        yield f"the OpenCL layer lost {aligned.trace.n_lost} commands"
    for phase, occurrences in phases.items():
        wrong = [each.problem for each in occurrences if each.problem]
        if wrong:
            yield f"{phase.value}: {wrong[0]} ({len(wrong)} of {len(occurrences)} times)"


def _notes(aligned: AlignedTrace) -> Iterator[str]:
    """Yield a line for each device whose driver gave times that cannot be right: of how many commands, and which."""
    for position, device in enumerate(aligned.trace.devices):
        anomalies = aligned.anomalies[aligned.device == position]
        if n_odd := np.count_nonzero(anomalies):
            yield (
                f"{device.device_name}, driver {device.driver_version}: times of {n_odd} of {anomalies.size} commands "
                f"cannot be right: {anomaly_text(anomalies)}"
            )


_Key = TypeVar("_Key", bound=Hashable)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FilledTimes:
    """The times of launches, and of how many of each key they are known."""

    times_ns: Times
    n_known: Mapping[str, int]
    #: Launches that are not known, of what has too many of them.
    n_unknown: Mapping[str, int]


def filled(times_ns: Times, is_known: Mask, alike: Sequence[Hashable], counted: Sequence[str]) -> FilledTimes:
    """Let the mean of the launches alike stand for one that is not known; where none of them is, nothing can."""
    places, _ = _places(alike)
    n_alike = np.bincount(places, is_known)
    means_ns = np.bincount(places, np.where(is_known, times_ns, 0)) / np.maximum(n_alike, 1)
    of, keys = _places(counted)
    n_known, n_all = np.bincount(of, is_known), np.bincount(of)
    is_unknown = n_all - n_known > MOST_DROPPED_RATIO * n_all
    is_unknown[of[n_alike[places] == 0]] = True
    return FilledTimes(
        times_ns=np.where(is_known, times_ns, np.rint(means_ns[places]).astype(np.int64)),
        n_known={key: int(n_known[place]) for key, place in keys.items()},
        n_unknown={key: int(n_all[place] - n_known[place]) for key, place in keys.items() if is_unknown[place]},
    )


def _places(keys: Sequence[_Key]) -> tuple[npt.NDArray[np.intp], dict[_Key, int]]:
    found: dict[_Key, int] = {}
    return np.array([found.setdefault(key, len(found)) for key in keys], np.intp), found

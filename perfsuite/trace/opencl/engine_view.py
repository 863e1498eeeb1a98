"""What one run of the engine shows of its device: kernels, idle time and growth, phase by phase."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from perfsuite.records.events import EngineRecord, Phase, Span
from perfsuite.trace.forecast_errors import ForecastScore, HorizonErrors
from perfsuite.trace.opencl.device_clock import AlignedTrace, within
from perfsuite.trace.opencl.device_idle import IdleWindow, device_activity
from perfsuite.trace.opencl.kernel_growth import KernelGrowth, kernel_growth
from perfsuite.trace.opencl.kernel_mapping import KernelMapping, phase_spans
from perfsuite.trace.opencl.kernel_samples import MappedRun, map_run
from perfsuite.trace.opencl.kernel_statistics import KernelStatistics, kernel_statistics


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseView:
    """One phase of a run."""

    phase: Phase
    n_occurrences: int
    #: Median over its occurrences.
    duration_ns: int
    #: The share of it in which operators occupy the device's queue.
    operators_ratio: float
    #: The longest total first, over all occurrences.
    kernels: tuple[KernelStatistics, ...]
    #: By kernel: the operators that it computes.
    roles: Mapping[str, tuple[str, ...]]
    #: The device's idle share, occurrence by occurrence in the order of time.
    idle: tuple[IdleWindow, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineView:
    """A whole run."""

    phases: tuple[PhaseView, ...]
    #: Kernels over the steps of the first repetition's generation, the steepest first.
    growth: tuple[KernelGrowth, ...]
    #: Of the latencies of decode steps, forecast from those before them.
    forecast_errors: tuple[HorizonErrors, ...]
    #: Why figures cannot be trusted.
    problems: tuple[str, ...]
    #: What is odd about the times that the driver gave.
    notes: tuple[str, ...]


def engine_view(record: EngineRecord, aligned: AlignedTrace, mapping: KernelMapping) -> EngineView:
    """Look at one process from the side of its device."""
    mapped = map_run(record, aligned, mapping)
    decode = phase_spans(record, Phase.DECODE)
    first = [span.window_ns for span in decode if span.repetition == 0]
    phases = []
    for phase, occurrences in mapped.phases.items():
        spans = [each.traced.span for each in occurrences]
        shares = [each.traced.operators_ns / each.traced.span.duration_ns for each in occurrences]
        windows = [span.window_ns for span in spans]
        phases.append(
            PhaseView(
                phase=phase,
                n_occurrences=len(occurrences),
                duration_ns=round(median(span.duration_ns for span in spans)),
                operators_ratio=median(shares),
                kernels=kernel_statistics(within(aligned, windows)),
                roles=mapping.kernel_roles(phase),
                idle=_idle(aligned, windows),
            )
        )
    return EngineView(
        phases=tuple(phases),
        growth=kernel_growth(aligned, first),
        forecast_errors=_forecast_errors(decode),
        problems=(*mapped.problems, *_named(mapped)),
        notes=mapped.notes,
    )


def _named(mapped: MappedRun) -> Iterator[str]:
    for (phase, name), text in (*mapped.operator_problems.items(), *mapped.kernel_problems.items()):
        yield f"{phase.value}, {name}: {text}"


def _idle(aligned: AlignedTrace, windows: Sequence[tuple[int, int]]) -> tuple[IdleWindow, ...]:
    """Return the idle share of the device that the kernels ran on; of several the busiest one's."""
    devices = sorted({int(each) for each in aligned.device})
    found = [device_activity(aligned, device).idle(windows) for device in devices]
    return max(found, key=lambda idle: sum(window.busy_ns for window in idle), default=())


def _forecast_errors(steps: Sequence[Span]) -> tuple[HorizonErrors, ...]:
    """Score the online forecast on all repetitions, each from its own beginning."""
    score = ForecastScore()
    for repetition in dict.fromkeys(span.repetition for span in steps):
        score.begin()
        for step, span in enumerate(each for each in steps if each.repetition == repetition):
            score.observe(step, span.duration_ns)
    return score.errors()

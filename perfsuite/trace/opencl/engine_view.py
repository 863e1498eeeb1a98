"""What one run of the engine shows of its device: kernels, idle time and growth, phase by phase."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np
import numpy.typing as npt

from perfsuite.records.engine_trace import Times
from perfsuite.records.events import EngineRecord, Phase, Span
from perfsuite.records.opencl_commands import CommandType
from perfsuite.trace.forecast_errors import ForecastScore, HorizonErrors
from perfsuite.trace.opencl.device_clock import AlignedTrace, within
from perfsuite.trace.opencl.device_idle import IdleWindow, device_activity
from perfsuite.trace.opencl.kernel_mapping import KernelMapping, phase_spans
from perfsuite.trace.opencl.kernel_samples import MappedRun, map_run
from perfsuite.trace.opencl.kernel_statistics import KernelStatistics, kernel_statistics

#: Chance that a slope lies within its interval.
CONFIDENCE = 0.99

#: Fewer steps have no interval worth reporting.
LEAST_STEPS = 8

#: Of more steps, medians of so many blocks are fitted: the slopes between all pairs would not fit into memory.
_MOST_BLOCKS = 512

_Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelGrowth:
    """How one kernel's time moves with the step."""

    name: str
    #: Its time in each step, ns; `None` where the execution of a launch of the step is not known.
    step_totals_ns: tuple[int | None, ...]
    slope_ns_per_step: float
    lower_ns_per_step: float
    upper_ns_per_step: float
    #: Time at step 0 by the line.
    intercept_ns: float
    #: 1 - residual / total sum of squares: the share of the variance that the line explains, and below 0 where the mean
    #: fits better, for the line is robust and not of least squares. `None` without any variance.
    r_squared: float | None

    @property
    def grows(self) -> bool:
        return self.lower_ns_per_step > 0

    @property
    def growth_ratio(self) -> float | None:
        """Time at the last step over time at the first, both by the line; `None` where the line begins at 0 or less."""
        last_ns = self.intercept_ns + self.slope_ns_per_step * (len(self.step_totals_ns) - 1)
        return last_ns / self.intercept_ns if self.intercept_ns > 0 else None


def kernel_growth(
    aligned: AlignedTrace, steps: Sequence[tuple[int, int]], *, confidence: float = CONFIDENCE
) -> tuple[KernelGrowth, ...]:
    """Return each kernel's growth over steps, the steepest first.

    The steps are a begin and an end each on the host's clock, ns, in their order and without overlap. A kernel's time
    in a step is the sum of END - START over its launches within it, whatever their NDRange. Over the steps s = 0, 1,
    ... the slope is the median of all slopes between two steps (Theil-Sen), its interval that of Sen:

        slope = median over i < j of (time_j - time_i) / (j - i)          ns per step

    The kernel grows where the whole interval is above 0. The interval takes the steps' deviations for independent: a
    device that slows down as it warms up makes every kernel grow, which `growth_ratio` of many kernels alike gives
    away. None is of fewer steps than `LEAST_STEPS`.

    *Source*: Sen, 'Estimates of the regression coefficient based on Kendall's tau', JASA 63 (1968).
    """
    if len(steps) < LEAST_STEPS:
        return ()
    names, totals_ns, is_known = step_totals(aligned, steps)
    found = [
        _growth(aligned.trace.names[name], totals_ns[row], is_known[row], confidence)
        for row, name in enumerate(names)
        if is_known[row].sum() >= LEAST_STEPS
    ]
    return tuple(sorted(found, key=lambda each: (-each.slope_ns_per_step, each.name)))


def step_totals(
    aligned: AlignedTrace, steps: Sequence[tuple[int, int]]
) -> tuple[tuple[int, ...], Times, npt.NDArray[np.bool_]]:
    """Return the kernels' time by step.

    They are positions among the trace's names, and two arrays of shape (kernels, steps): time, ns, and if it is known.
    """
    commands = aligned.trace.commands
    step = _steps_of(commands["host_start_ns"], steps)
    inside = np.flatnonzero((commands["type"] == CommandType.KERNEL) & (step >= 0))
    names, rows = np.unique(commands["name"][inside], return_inverse=True)
    cells = rows * len(steps) + step[inside]
    executed_ns, is_executed = (each[inside] for each in aligned.execution)
    totals_ns = np.zeros(names.size * len(steps), dtype=np.int64)
    np.add.at(totals_ns, cells[is_executed], executed_ns[is_executed])
    is_known = np.ones(totals_ns.size, dtype=bool)
    is_known[cells[~is_executed]] = False
    shape = (names.size, len(steps))
    return tuple(names.tolist()), totals_ns.reshape(shape), is_known.reshape(shape)


def _steps_of(times_ns: Times, steps: Sequence[tuple[int, int]]) -> npt.NDArray[np.intp]:
    """Return the step of each time, -1 where it is in none."""
    edges_ns = np.array(steps, dtype=np.int64).reshape(-1, 2)
    step = np.searchsorted(edges_ns[:, 0], times_ns, side="right") - 1
    return np.where((step >= 0) & (times_ns < edges_ns[step, 1]), step, -1)


def _growth(name: str, totals_ns: Times, is_known: npt.NDArray[np.bool_], confidence: float) -> KernelGrowth:
    from scipy.stats import theilslopes  # takes a third of a second to load

    at, times_ns = np.flatnonzero(is_known).astype(np.float64), totals_ns[is_known].astype(np.float64)
    at_blocks, times_blocks_ns = _blocks(at, times_ns)
    slope, _, lower, upper = theilslopes(times_blocks_ns, at_blocks, alpha=confidence)
    intercept_ns = float(np.median(times_ns - slope * at))
    residuals_ns = times_ns - slope * at - intercept_ns
    total_squares = float(((times_ns - times_ns.mean()) ** 2).sum())
    return KernelGrowth(
        name=name,
        step_totals_ns=tuple(
            each if known else None for each, known in zip(totals_ns.tolist(), is_known.tolist(), strict=True)
        ),
        slope_ns_per_step=float(slope),
        lower_ns_per_step=float(lower),
        upper_ns_per_step=float(upper),
        intercept_ns=intercept_ns,
        r_squared=1 - float((residuals_ns**2).sum()) / total_squares if total_squares else None,
    )


def _blocks(at: _Floats, times_ns: _Floats) -> tuple[_Floats, _Floats]:
    """Return medians over blocks of steps where there are many."""
    if at.size <= _MOST_BLOCKS:
        return at, times_ns
    parts = [np.array_split(each, _MOST_BLOCKS) for each in (at, times_ns)]
    at_blocks, times_blocks = (np.array([np.median(block) for block in blocks]) for blocks in parts)
    return at_blocks, times_blocks


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

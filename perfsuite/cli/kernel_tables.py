"""What ``perfsuite kernels`` prints for people."""

from __future__ import annotations

from collections.abc import Sequence

from rich.markup import escape
from rich.table import Column, Table

from perfsuite.cli.commands import show
from perfsuite.expectation.cases import LlamaWorkload
from perfsuite.measure.opencl_backend import OpenClBackend
from perfsuite.records.events import Phase
from perfsuite.trace.opencl.device_idle import IdleWindow
from perfsuite.trace.opencl.engine_view import EngineView, PhaseView
from perfsuite.trace.opencl.kernel_growth import KernelGrowth
from perfsuite.units import format_count, format_ns, format_signed_ns
from perfsuite.verdict.traced_view import TracedView

#: Steps of a generation at which the idle share is told, counted from 1.
_TOLD_STEPS = (1, 4, 16, 64, 256, 1024)
_MOST_ROLES = 3


def show_view(traced: TracedView, workload: LlamaWorkload, backend: OpenClBackend, *, n_top: int) -> None:
    """Print the kernels of each phase, what grows, when the device is idle, and the forecast's errors."""
    print(f"{workload.prefix} on {backend.device}; {traced.engine_version}")
    if backend.compatibility_layer:
        print("The device is a processor, which the backend takes through the suite's compatibility layer.")
    for phase in traced.view.phases:
        print()
        _show_phase(phase, n_top)
    _show_growth(traced.view)
    _show_forecast(traced.view)
    clocks = ", ".join(f"{format_ns(clock.error_ns)} ({clock.basis.value})" for clock in traced.aligned.clocks)
    print(f"\nTimes on the host's clock are right to {clocks or 'an unknown error'}.")
    for problem in (*traced.view.problems, *((traced.complaint,) if traced.complaint else ())):
        print(f"Not to be trusted: {problem}")


def _show_phase(view: PhaseView, n_top: int) -> None:
    median = f", the median of {view.n_occurrences}" if view.n_occurrences > 1 else ""
    print(
        f"{view.phase.value}: {format_ns(view.duration_ns)}{median}; "
        f"kernels account for {view.operators_ratio:.1%}; {_idle_text(view)}"
    )
    table = Table(
        Column("kernel", no_wrap=True),
        *(Column(name, justify="right", no_wrap=True) for name in ("launches", "total", "share", "median", "p95")),
        "operators",
        box=None,
        pad_edge=False,
    )
    for kernel in view.kernels[:n_top]:
        table.add_row(
            escape(kernel.name),
            str(kernel.n),
            format_ns(kernel.execution.total_ns),
            f"{kernel.share_ratio:.1%}",
            format_ns(kernel.execution.median_ns),
            format_ns(kernel.execution.p95_ns),
            escape(_roles(view.roles.get(kernel.name, ()))),
        )
    show(table)
    if (n_more := len(view.kernels) - n_top) > 0:
        rest = sum(kernel.share_ratio for kernel in view.kernels[n_top:])
        print(f"and {format_count(n_more, 'kernel')} with {rest:.1%} of the time")


def _roles(roles: Sequence[str]) -> str:
    shown = ", ".join(roles[:_MOST_ROLES])
    return f"{shown}, {len(roles) - _MOST_ROLES} more" if len(roles) > _MOST_ROLES else shown


def _idle_text(view: PhaseView) -> str:
    if view.phase is not Phase.DECODE:
        return f"the device is idle for {_percent(view.idle[0]) if view.idle else '-'}"
    told = [(step, view.idle[step - 1]) for step in _TOLD_STEPS if step <= len(view.idle)]
    return "the device is idle for " + ", ".join(f"{_percent(window)} at step {step}" for step, window in told)


def _percent(window: IdleWindow) -> str:
    return "-" if window.idle_ratio is None else f"{window.idle_ratio:.1%}"


def _show_growth(view: EngineView) -> None:
    growing = [each for each in view.growth if each.grows]
    if not view.growth:
        return
    if not growing:
        print("\nNo kernel's time grows with the decode step.")
        return
    print("\nKernels whose time grows with the decode step (with 99 % confidence):")
    table = Table("kernel", "a step", "at least", "at most", "over the run", "R²", box=None, pad_edge=False)
    for each in growing:
        table.add_row(escape(each.name), *_growth_cells(each))
    show(table)


def _growth_cells(each: KernelGrowth) -> tuple[str, ...]:
    slopes = (each.slope_ns_per_step, each.lower_ns_per_step, each.upper_ns_per_step)
    ratio, fit = each.growth_ratio, each.r_squared
    return (
        *(format_signed_ns(slope) for slope in slopes),
        "-" if ratio is None else f"{ratio:.2f} times",
        "-" if fit is None else f"{fit:.2f}",
    )


def _show_forecast(view: EngineView) -> None:
    known = [each for each in view.forecast_errors if each.n_outcomes]
    if not known:
        return
    print("\nThe latency of decode steps, forecast from those before them:")
    table = Table("steps ahead", "n", "median error", "95 % within", "in interval", box=None, pad_edge=False)
    for each in known:
        table.add_row(
            str(each.horizon),
            str(each.n_outcomes),
            f"{each.median_percent:.1f} %",
            f"{each.p95_percent:.1f} %",
            f"{each.within_ratio:.0%}",
        )
    show(table)

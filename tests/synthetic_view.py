"""A made-up run of the engine on a device, viewed: for what prints it."""

from __future__ import annotations

from pathlib import Path

from perfsuite.expectation.llama_workload import LlamaWorkload, llama_workload
from perfsuite.experiments.kernels.traced_view import TracedView
from perfsuite.records.events import Phase
from perfsuite.trace.forecast_errors import HorizonErrors
from perfsuite.trace.opencl.device_clock import AlignedTrace, align
from perfsuite.trace.opencl.device_idle import IdleWindow
from perfsuite.trace.opencl.engine_view import EngineView, KernelGrowth, PhaseView
from perfsuite.trace.opencl.kernel_statistics import KernelStatistics, Spread
from perfsuite.workload.scenario import find_scenario
from perfsuite.workload.weights import resolve

from .conftest import STORED_MODEL
from .synthetic_opencl import EPOCH_NS, drifting, steady_commands, timer_point, trace


def workload() -> LlamaWorkload:
    weights = resolve(STORED_MODEL, cache_dir=Path("/nowhere"))
    return llama_workload(weights, find_scenario("siso"), flash_attn=False)


def kernel(name: str, total_ns: int, *, share_ratio: float = 0.25) -> KernelStatistics:
    n = 4
    spread = Spread(total_ns=total_ns, median_ns=total_ns // n, p95_ns=total_ns // n)
    return KernelStatistics(
        name=name,
        n=n,
        n_left_out=0,
        execution=spread,
        share_ratio=share_ratio,
        queueing=spread,
        dispatch=spread,
        tick_error_ratio=None,
        occupied=None,
        n_queueing=n,
        n_dispatch=n,
        n_occupied=0,
    )


def idle(ratio: float) -> IdleWindow:
    return IdleWindow(start_ns=0, end_ns=10**6, busy_ns=round((1 - ratio) * 10**6), n_left_out=0)


def phase_view(phase: Phase, kernels: tuple[KernelStatistics, ...], *idle_ratios: float) -> PhaseView:
    return PhaseView(
        phase=phase,
        n_occurrences=len(idle_ratios),
        duration_ns=2_000_000,
        operators_ratio=0.875,
        kernels=kernels,
        roles={each.name: (each.name.removeprefix("kernel_"),) for each in kernels},
        idle=tuple(map(idle, idle_ratios)),
    )


def growth(name: str, slope_ns: float) -> KernelGrowth:
    """Return a kernel that takes 1000 ns at first and `slope_ns` more with each of ten steps."""
    return KernelGrowth(
        name=name,
        step_totals_ns=tuple(round(1000 + slope_ns * step) for step in range(11)),
        slope_ns_per_step=slope_ns,
        lower_ns_per_step=slope_ns - 1.0,
        upper_ns_per_step=slope_ns + 1.0,
        intercept_ns=1000.0,
        r_squared=0.75,
    )


def horizon(steps: int, n_outcomes: int) -> HorizonErrors:
    has = n_outcomes > 0
    return HorizonErrors(
        horizon=steps,
        n_outcomes=n_outcomes,
        median_percent=1.5 if has else None,
        p95_percent=6.5 if has else None,
        within_ratio=0.9 if has else None,
        last_median_percent=2.5 if has else None,
        mean_median_percent=3.5 if has else None,
    )


def aligned() -> AlignedTrace:
    clock = drifting(offset_ns=1000)
    return align(trace(steady_commands(20, clock), clock_points=[timer_point(EPOCH_NS, clock)]))


def traced_view(*phases: PhaseView, complaint: str | None = None, **changed: object) -> TracedView:
    view: dict[str, object] = {"growth": (), "forecast_errors": (), "problems": (), **changed}
    return TracedView(
        engine_version="llama 1, ggml 1 abc",
        aligned=aligned(),
        view=EngineView(phases=phases, **{"notes": (), **view}),  # type: ignore[arg-type]
        complaint=complaint,
    )

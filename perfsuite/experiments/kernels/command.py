"""``perfsuite kernels``."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from perfsuite.cli.answer import Answer, Part, Sheet, fields_of, figure, give
from perfsuite.cli.command_help import Commands, add_command
from perfsuite.cli.kept_folders import user_cache
from perfsuite.cli.opencl_run import engine_run, named_weights, opencl_backend
from perfsuite.cli.progress import progress
from perfsuite.cli.run_options import add_answer, add_subject, check_least
from perfsuite.cli.taken_device import taken_device
from perfsuite.device.profile import find_profile
from perfsuite.expectation.llama_workload import LlamaWorkload
from perfsuite.measure.opencl_backend import OpenClBackend
from perfsuite.records.events import Phase
from perfsuite.units import format_count, format_ns, format_signed_ns

if TYPE_CHECKING:
    from perfsuite.experiments.kernels.traced_view import TracedView
    from perfsuite.trace.opencl.device_idle import IdleWindow
    from perfsuite.trace.opencl.engine_view import EngineView, PhaseView
    from perfsuite.trace.opencl.kernel_statistics import KernelStatistics


#: Steps of a generation at which the idle share is told, counted from 1.
_TOLD_STEPS = (1, 4, 16, 64, 256, 1024)
_MOST_ROLES = 3


def view_answer(traced: TracedView, workload: LlamaWorkload, backend: OpenClBackend, *, n_top: int) -> Answer:
    """Return the kernels of each phase, what grows, when the device is idle, and the forecast's errors.

    As JSON it has all kernels, times in ns and shares as ratios.
    """
    parts, plain = lambda: _parts(traced, workload, backend, n_top), lambda: _plain(traced, workload, backend)
    return Answer(parts=parts, plain=plain)


def _plain(traced: TracedView, workload: LlamaWorkload, backend: OpenClBackend) -> dict[str, Any]:
    view = traced.view
    return {
        "workload": workload.prefix,
        "engine": traced.engine_version,
        "device": backend.fingerprint,
        "clocks": [{**asdict(clock), "basis": clock.basis.value} for clock in traced.aligned.clocks],
        "problems": _problems(traced),
        "notes": list(view.notes),
        "phases": [_plain_phase(each) for each in view.phases],
        "growth": [{**asdict(each), "grows": each.grows, "growth_ratio": each.growth_ratio} for each in view.growth],
        "forecast_errors": [asdict(each) for each in view.forecast_errors],
    }


def _plain_phase(view: PhaseView) -> dict[str, Any]:
    return {
        "phase": view.phase.value,
        **fields_of(view, "n_occurrences", "duration_ns", "operators_ratio"),
        "idle_ratio": [window.idle_ratio for window in view.idle],
        "kernels": [{**asdict(each), "operators": list(view.roles.get(each.name, ()))} for each in view.kernels],
    }


def _problems(traced: TracedView) -> list[str]:
    return [*traced.view.problems, *([traced.complaint] if traced.complaint else [])]


def _parts(traced: TracedView, workload: LlamaWorkload, backend: OpenClBackend, n_top: int) -> Iterator[Part]:
    yield f"{workload.prefix} on {backend.device}; {traced.engine_version}"
    if backend.compatibility_layer:
        yield "The device is a processor, which the backend takes through the suite's compatibility layer."
    for phase in traced.view.phases:
        yield from _phase_parts(phase, n_top)
    yield from _growth_parts(traced.view)
    yield from _forecast_parts(traced.view)
    clocks = ", ".join(f"{format_ns(clock.error_ns)} ({clock.basis.value})" for clock in traced.aligned.clocks)
    yield f"\nTimes on the host's clock are right to {clocks or 'an unknown error'}."
    yield from (f"Odd: {note}" for note in traced.view.notes)
    yield from (f"Not to be trusted: {problem}" for problem in _problems(traced))


def _phase_parts(view: PhaseView, n_top: int) -> Iterator[Part]:
    median = f", the median of {view.n_occurrences}" if view.n_occurrences > 1 else ""
    yield (
        f"\n{view.phase.value}: {format_ns(view.duration_ns)}{median}; "
        f"kernels account for {view.operators_ratio:.1%}; {_idle_text(view)}"
    )
    yield Sheet(
        ("kernel", ">launches", ">total", ">share", ">median", ">p95", ">tick", "operators"),
        [
            (
                *(kernel.name, _launches(kernel), *_execution(kernel)),
                figure("{:.2g} %", None if kernel.tick_error_ratio is None else 100 * kernel.tick_error_ratio),
                _roles(view.roles.get(kernel.name, ())),
            )
            for kernel in view.kernels[:n_top]
        ],
    )
    if rest := view.kernels[n_top:]:
        share_ratio = sum(kernel.share_ratio for kernel in rest)
        yield f"and {format_count(len(rest), 'kernel')} with {share_ratio:.1%} of the time"


def _launches(kernel: KernelStatistics) -> str:
    """Return the launches whose execution is known, of all where some are not."""
    return f"{kernel.n} of {kernel.n + kernel.n_left_out}" if kernel.n_left_out else str(kernel.n)


def _execution(kernel: KernelStatistics) -> tuple[str, str, str, str]:
    """Return the total, the share of all kernels', the median and the 95th percentile."""
    if kernel.execution is None:
        return "-", "-", "-", "-"
    total, median, p95 = map(
        format_ns, (kernel.execution.total_ns, kernel.execution.median_ns, kernel.execution.p95_ns)
    )
    return total, f"{kernel.share_ratio:.1%}", median, p95


def _roles(roles: Sequence[str]) -> str:
    shown = ", ".join(roles[:_MOST_ROLES])
    return f"{shown}, {len(roles) - _MOST_ROLES} more" if len(roles) > _MOST_ROLES else shown


def _idle_text(view: PhaseView) -> str:
    if view.phase is not Phase.DECODE:
        return f"the device is idle for {_percent(view.idle[0]) if view.idle else '-'}"
    told = [(step, view.idle[step - 1]) for step in _TOLD_STEPS if step <= len(view.idle)]
    return "the device is idle for " + ", ".join(f"{_percent(window)} at step {step}" for step, window in told)


def _percent(window: IdleWindow) -> str:
    bound = "at most " if window.n_left_out else ""
    return "-" if window.idle_ratio is None else f"{bound}{window.idle_ratio:.1%}"


def _growth_parts(view: EngineView) -> Iterator[Part]:
    growing = [each for each in view.growth if each.grows]
    if growing:
        yield "\nKernels whose time grows with the decode step (with 99 % confidence):"
        slopes = [(each.slope_ns_per_step, each.lower_ns_per_step, each.upper_ns_per_step) for each in growing]
        fits = [(figure("{:.2f} times", each.growth_ratio), figure("{:.2f}", each.r_squared)) for each in growing]
        yield Sheet(
            ("kernel", "a step", "at least", "at most", "over the run", "R²"),
            [
                (each.name, *map(format_signed_ns, slope), *fit)
                for each, slope, fit in zip(growing, slopes, fits, strict=True)
            ],
        )
    elif view.growth:
        yield "\nNo kernel's time grows with the decode step."


def _forecast_parts(view: EngineView) -> Iterator[Part]:
    known = [each for each in view.forecast_errors if each.n_outcomes]
    if known:
        yield "\nThe latency of decode steps, forecast from those before them:"
        yield Sheet(
            ("steps ahead", "n", "median error", "95 % within", "in interval"),
            [
                (
                    n.horizon,
                    n.n_outcomes,
                    f"{n.median_percent:.1f} %",
                    f"{n.p95_percent:.1f} %",
                    f"{n.within_ratio:.0%}",
                )
                for n in known
            ],
        )


_TOP = 8

_ABOUT = """
By phase: time and operators of each kernel, idle time, and kernels that grow with the step. 'make perf-opencl' builds
the backend. 'perfsuite trace --opencl' follows other programs.
"""

_EXAMPLES = {"perfsuite kernels --scenario=p64-g32 --top=20": "a longer generation, more kernels"}


def add_parser(commands: Commands) -> None:
    """Add the subcommand."""
    parser = add_command(commands, "kernels", about=_ABOUT, examples=_EXAMPLES, see=("docs/kernels.md",))
    add_subject(parser, "device", "model", "scenario", "threads", "opencl-platform", "flash-attn")
    answer = add_answer(parser)
    answer.add_argument(
        "--top", type=int, default=_TOP, metavar="N", help=f"kernels shown for each phase (default {_TOP})"
    )
    parser.set_defaults(run=_kernels)


def _kernels(options: argparse.Namespace) -> int:
    from perfsuite.experiments.kernels.traced_view import traced_view  # NumPy and the layers, which few commands need

    check_least(options, "threads", "top")
    profile = find_profile(options.device)
    named_weights(options)
    with taken_device(profile, "kernels", options) as taken, progress("kernels", options) as told:
        backend = opencl_backend(options, taken.board)
        run = engine_run(options, taken.board, backend)
        traced = traced_view(
            run.plan,
            backend,
            profile,
            taken.board,
            model=run.workload.weights.identity,
            cache_dir=user_cache(),
            announce=told.step,
        )
    give(view_answer(traced, run.workload, backend, n_top=options.top), options)
    return 0

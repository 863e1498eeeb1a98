"""OpenCL commands of a program as JSON values; docs/opencl-tracing.md describes the keys."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from perfsuite.records.opencl_commands import CommandType
from perfsuite.report.opencl_summary import DeviceSummary, OpenClSummary
from perfsuite.report.plain_fields import plain_fields
from perfsuite.trace.opencl.kernel_statistics import KernelStatistics, Spread

_CLOCK = ("n_readings", "n_steps", "drift_ppm", "drift_error_ppm", "error_ns")


def plain_process(summary: OpenClSummary) -> dict[str, Any]:
    """Return one process."""
    return {
        **plain_fields(summary, "pid", "n_commands", "n_lost", "n_unfinished", "is_complete", "n_left_out"),
        "n_by_type": _counts(summary.n_by_type),
        "n_by_anomaly": {str(each.name).lower(): _counts(counts) for each, counts in summary.n_by_anomaly.items()},
        "devices": [_device(each) for each in summary.devices],
        "kernels": [_kernel(each) for each in summary.kernels],
    }


def _counts(n_by_type: Mapping[CommandType, int]) -> dict[str, int]:
    return {each.name.lower(): count for each, count in n_by_type.items()}


def _device(summary: DeviceSummary) -> dict[str, Any]:
    clock, span, idle = summary.clock, summary.span, summary.idle
    whole = idle and idle.whole
    return {
        **plain_fields(summary.device, "platform_name", "device_name", "driver_version"),
        "clock": clock and {"basis": clock.basis.value, **plain_fields(clock, *_CLOCK)},
        "first_start_ns": span and span[0],
        "last_end_ns": span and span[1],
        "busy_ns": whole and whole.busy_ns,
        "idle_ratio": whole and whole.idle_ratio,
        "n_gaps": idle and idle.n_gaps,
        "longest_gaps": idle
        and [
            {**plain_fields(each.gap, "start_ns", "duration_ns"), **plain_fields(each, "preceding", "following")}
            for each in idle.longest_gaps
        ],
    }


def _kernel(kernel: KernelStatistics) -> dict[str, Any]:
    return {
        **plain_fields(kernel, "name", "n", "n_left_out", "share_ratio"),
        "execution": _spread(kernel.execution),
        "queueing": _spread(kernel.queueing),
        "dispatch": _spread(kernel.dispatch),
        "occupied": kernel.occupied and {"n": kernel.n_occupied, **_spread(kernel.occupied)},
    }


def _spread(spread: Spread) -> dict[str, int]:
    return plain_fields(spread, "total_ns", "median_ns", "p95_ns")

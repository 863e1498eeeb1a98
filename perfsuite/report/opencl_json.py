"""OpenCL commands of a program as JSON values; docs/opencl-tracing.md describes the keys."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from perfsuite.records.opencl_commands import CommandType
from perfsuite.report.opencl_summary import DeviceSummary, NamedGap, OpenClSummary
from perfsuite.trace.opencl.kernel_statistics import KernelStatistics, Spread


def plain_process(summary: OpenClSummary) -> dict[str, Any]:
    """Return one process."""
    return {
        "pid": summary.pid,
        "n_commands": summary.n_commands,
        "n_lost": summary.n_lost,
        "n_unfinished": summary.n_unfinished,
        "is_complete": summary.is_complete,
        "n_by_type": _counts(summary.n_by_type),
        "n_left_out": summary.n_left_out,
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
        "platform_name": summary.device.platform_name,
        "device_name": summary.device.device_name,
        "driver_version": summary.device.driver_version,
        "clock": clock
        and {
            "basis": clock.basis.value,
            "n_readings": clock.n_readings,
            "n_steps": clock.n_steps,
            "drift_ppm": clock.drift_ppm,
            "drift_error_ppm": clock.drift_error_ppm,
            "error_ns": clock.error_ns,
        },
        "first_start_ns": span and span[0],
        "last_end_ns": span and span[1],
        "busy_ns": whole and whole.busy_ns,
        "idle_ratio": whole and whole.idle_ratio,
        "n_gaps": idle and idle.n_gaps,
        "longest_gaps": idle and [_gap(each) for each in idle.longest_gaps],
    }


def _gap(named: NamedGap) -> dict[str, Any]:
    return {
        "start_ns": named.gap.start_ns,
        "duration_ns": named.gap.duration_ns,
        "preceding": named.preceding,
        "following": named.following,
    }


def _kernel(kernel: KernelStatistics) -> dict[str, Any]:
    return {
        "name": kernel.name,
        "n": kernel.n,
        "n_left_out": kernel.n_left_out,
        "share_ratio": kernel.share_ratio,
        "execution": _spread(kernel.execution),
        "queueing": _spread(kernel.queueing),
        "dispatch": _spread(kernel.dispatch),
        "occupied": kernel.occupied and {"n": kernel.n_occupied, **_spread(kernel.occupied)},
    }


def _spread(spread: Spread) -> dict[str, int]:
    return {"total_ns": spread.total_ns, "median_ns": spread.median_ns, "p95_ns": spread.p95_ns}

"""Scaling of base units (ns, bytes, FLOPs) to what people read; nothing else in the suite scales."""

from __future__ import annotations

import math
from collections.abc import Iterable

NS_PER_S = 1_000_000_000

#: From here on a change is easier to read as a factor than as a percentage.
FACTOR_RATIO = 2.0

_TIME_STEPS: tuple[tuple[float, str], ...] = ((1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1.0, "ns"))
_BYTE_STEPS: tuple[tuple[float, str], ...] = (
    (1024.0**3, "GiB"),
    (1024.0**2, "MiB"),
    (1024.0, "KiB"),
    (1.0, "B"),
)
_FLOP_RATE_STEPS: tuple[tuple[float, str], ...] = ((1e12, "TFLOP/s"), (1e9, "GFLOP/s"), (1e6, "MFLOP/s"))
_BYTE_RATE_STEPS: tuple[tuple[float, str], ...] = ((1e12, "TB/s"), (1e9, "GB/s"), (1e6, "MB/s"))


def format_ns(time_ns: float | None) -> str:
    """Format nanoseconds with three significant digits, ``-`` where nothing was measured."""
    return "-" if time_ns is None else _scaled(time_ns, _TIME_STEPS)


def format_signed_ns(time_ns: float | None) -> str:
    """Format a difference of times with its sign, ``-`` where nothing was measured."""
    return "-" if time_ns is None else f"{'+' if time_ns >= 0 else ''}{format_ns(time_ns)}"


def common_time_unit(times_ns: Iterable[float]) -> str:
    """Return the unit that suits an axis: that in which the largest of the times is a whole one."""
    largest_ns = max(map(abs, times_ns), default=0.0)
    return next((unit for scale, unit in _TIME_STEPS if largest_ns >= scale), _TIME_STEPS[-1][1])


def to_time_unit(time_ns: float, unit: str) -> float:
    """Scale nanoseconds to a unit of `common_time_unit`, as axes have them."""
    return time_ns / next(scale for scale, name in _TIME_STEPS if name == unit)


def to_percent(ratio: float) -> float:
    """Scale a share to per cent, as axes have it."""
    return ratio * 100.0


def to_change_percent(ratio: float) -> float:
    """Scale a new-over-old ratio to a change in per cent, as axes have it."""
    return (ratio - 1.0) * 100.0


def format_bytes(n_bytes: float | None) -> str:
    """Format a byte count in binary units, ``-`` where nothing was measured."""
    return "-" if n_bytes is None else _scaled(n_bytes, _BYTE_STEPS)


def format_flops_per_s(flops_per_s: float) -> str:
    """Format a rate of arithmetic in decimal units."""
    return _scaled(flops_per_s, _FLOP_RATE_STEPS)


def format_bytes_per_s(bytes_per_s: float) -> str:
    """Format a bandwidth in decimal units."""
    return _scaled(bytes_per_s, _BYTE_RATE_STEPS)


def format_tokens_per_s(tokens_per_s: float | None) -> str:
    """Format a speed with three significant digits and whole tokens, without its unit; ``-`` where there is none."""
    if tokens_per_s is None:
        return "-"
    digits = max(0, 3 - len(str(int(_rounded(tokens_per_s)))))
    return f"{tokens_per_s:.{digits}f}"


def to_giga_per_s(per_s: float) -> float:
    """Scale FLOP/s to GFLOP/s or bytes/s to GB/s, as axes have them."""
    return per_s / 1e9


def to_mebibytes(n_bytes: float) -> float:
    """Scale bytes to MiB, as axes have them."""
    return n_bytes / 1024.0**2


def format_change(ratio: float | None) -> str:
    """Format a new-over-old ratio as a signed percentage, ``-`` where there is no old value."""
    if ratio is None:
        return "-"
    percent = round((ratio - 1.0) * 100.0, 1) + 0.0  # which takes the sign from -0.0
    return f"{percent:+.1f} %"


def format_limit(ratio: float) -> str:
    """Format a share that bounds something, such as 0.0215, as a percentage of two digits, rounded up: ``2.2 %``."""
    percent = round(ratio * 100.0, 6)
    step = 10.0 ** max(-6, math.floor(math.log10(percent)) - 1) if percent > 0.0 else 1.0
    return f"{math.ceil(round(percent / step, 6)) * step:g} %"


def format_ratio(ratio: float | None) -> str:
    """Format a new-over-old ratio to be read: as a signed percentage, from twice on as a factor, ``× 20.6``."""
    if ratio is None or round(ratio, 2) < FACTOR_RATIO:
        return format_change(ratio)
    return f"× {ratio:.0f}" if ratio >= 100.0 else f"× {ratio:.3g}"


def format_count(count: int, noun: str) -> str:
    """Format a count with its noun, of which more or fewer than one have an s."""
    return f"{count} {noun}{'' if count == 1 else 's'}"


def _scaled(value: float, steps: tuple[tuple[float, str], ...]) -> str:
    """Take the largest unit that leaves a whole one after rounding, so that 999 999 ns is 1.00 ms and not 1000 µs."""
    scale, suffix = next((step for step in steps if _rounded(value / step[0]) >= 1.0), steps[-1])
    digits = max(0, 3 - len(str(int(_rounded(value / scale)))))
    return f"{value / scale:.{digits}f} {suffix}"


def _rounded(scaled: float) -> float:
    return abs(float(f"{scaled:.3g}"))

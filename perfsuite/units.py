"""Scaling of base units (ns, bytes, FLOPs) to what people read; nothing else in the suite scales."""

from __future__ import annotations

NS_PER_S = 1_000_000_000

_TIME_STEPS: tuple[tuple[float, str], ...] = ((1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1.0, "ns"))
_BYTE_STEPS: tuple[tuple[float, str], ...] = (
    (1024.0**3, "GiB"),
    (1024.0**2, "MiB"),
    (1024.0, "KiB"),
    (1.0, "B"),
)


def format_ns(time_ns: float | None) -> str:
    """Format nanoseconds with three significant digits, ``-`` where nothing was measured."""
    return "-" if time_ns is None else _scaled(time_ns, _TIME_STEPS)


def format_signed_ns(time_ns: float | None) -> str:
    """Format a difference of times with its sign, ``-`` where nothing was measured."""
    return "-" if time_ns is None else f"{'+' if time_ns >= 0 else ''}{format_ns(time_ns)}"


def format_bytes(n_bytes: float | None) -> str:
    """Format a byte count in binary units, ``-`` where nothing was measured."""
    return "-" if n_bytes is None else _scaled(n_bytes, _BYTE_STEPS)


def format_change(ratio: float | None) -> str:
    """Format a new-over-old ratio as a signed percentage, ``-`` where there is no old value."""
    return "-" if ratio is None else f"{(ratio - 1.0) * 100.0:+.1f} %"


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

"""Figure 4: what bounds a prompt, over devices of many peaks and bandwidths."""

from __future__ import annotations

import numpy as np

from perfsuite.expectation.paper.figures.wording import N_PROMPT, VARIANTS, long_prompt, percent
from perfsuite.expectation.paper.table_row import GIGA, TERA
from perfsuite.expectation.requests.analytic import forecast_grid
from perfsuite.records.chart import Axis, HeatMap, HeatPanel, Line, Numbers


def balance_line(slope: float, x: Numbers, y: Numbers) -> Line | None:
    """Draw y = slope x across the grid, from where it enters to where it leaves; None where it misses the grid.

    Both times are inversely proportional to a coordinate each, so they are equal along a line through the origin.
    """
    first, last = max(x[0], y[0] / slope), min(x[-1], y[-1] / slope)
    if first >= last:
        return None
    return Line(label="t_c = t_m", x=(first, last), y=(slope * first, slope * last))


#: Peaks in 1e12 operations/s, bandwidths in 1e9 bytes/s, and the efficiencies of compute and memory in percent.
_TOPS = tuple(float(tops) for tops in range(10, 101, 10))
_GB_PER_S = tuple(float(gigabytes) for gigabytes in range(10, 101, 10))
_EFFICIENCIES_PCT = ((100, 100), (50, 80))


def figure_4() -> HeatMap:
    """t_c/t_m of the prefill over 10 to 100 TOPS and 10 to 100 GB/s, without dispatches.

    *Source*: LIFE, Fig. 4.
    """
    panels = tuple(_bound_panel(variant, *efficiencies) for efficiencies in _EFFICIENCIES_PCT for variant in VARIANTS)
    bounds = [_compute_bound_ratio(panel) for panel in panels]
    return HeatMap(
        title=(
            f"Compute bounds {percent(bounds[0])} of the devices with {VARIANTS[0]}, {percent(bounds[1])} with "
            f"{VARIANTS[1]}; at the lower efficiencies {percent(bounds[2])} and {percent(bounds[3])}"
        ),
        note=f"Llama2-7B, prefill of {N_PROMPT} tokens under the paper's conventions; line: t_c = t_m. LIFE, Fig. 4",
        n_columns=len(VARIANTS),
        x_axis=Axis(label="bandwidth (GB/s)"),
        y_axis=Axis(label="peak (TOPS)"),
        colour_axis=Axis(label="t_c / t_m, above 1 compute bounds"),
        panels=panels,
    )


def _bound_panel(variant: str, compute_pct: int, memory_pct: int) -> HeatPanel:
    cost = long_prompt(variant)
    times = forecast_grid(
        cost,
        peak_flops_per_s=TERA * np.array(_TOPS)[:, np.newaxis],
        bandwidth_bytes_per_s=GIGA * np.array(_GB_PER_S),
        compute_efficiency_ratio=compute_pct / 100.0,
        memory_efficiency_ratio=memory_pct / 100.0,
    )
    slope = cost.flops / compute_pct / TERA / (cost.moved_bytes / memory_pct / GIGA)
    return HeatPanel(
        title=f"{variant}: {compute_pct} % of TOPS, {memory_pct} % of bandwidth",
        x=_GB_PER_S,
        y=_TOPS,
        values=tuple(tuple(map(float, row)) for row in times.ratio),
        boundary=balance_line(slope, _GB_PER_S, _TOPS),
    )


def _compute_bound_ratio(panel: HeatPanel) -> float:
    values = [value for row in panel.values for value in row]
    return sum(value > 1.0 for value in values) / len(values)


#: The device; the paper's caption has the two numbers the other way round.
_AT_TOPS = 30
_AT_GB_PER_S = 50
_GRID_PCT = tuple(float(percent) for percent in range(10, 101, 10))


def figure_5() -> HeatMap:
    """TTFT = max(t_c, t_m) over 10 to 100 % of 30 TOPS and of 50 GB/s, without dispatches.

    *Source*: LIFE, Fig. 5, on the prompt of Fig. 4.
    """
    panels = tuple(_ttft_panel(variant) for variant in VARIANTS)
    slowest, fastest = ([panel.values[place][place] for panel in panels] for place in (0, -1))
    return HeatMap(
        title=(
            f"The first token takes {fastest[0]:.1f} to {slowest[0]:.0f} s with {VARIANTS[0]}, {fastest[1]:.1f} to "
            f"{slowest[1]:.0f} s with {VARIANTS[1]}, by how much of the device is reached"
        ),
        note=f"Llama2-7B, prefill of {N_PROMPT} tokens under the paper's conventions, {_AT_TOPS} TOPS and "
        f"{_AT_GB_PER_S} GB/s; above the line compute bounds, below it memory. LIFE, Fig. 5",
        n_columns=len(VARIANTS),
        x_axis=Axis(label="compute efficiency (%)"),
        y_axis=Axis(label="memory efficiency (%)"),
        colour_axis=Axis(label="time to first token (s)"),
        panels=panels,
    )


def _ttft_panel(variant: str) -> HeatPanel:
    cost = long_prompt(variant)
    efficiencies = np.array(_GRID_PCT) / 100.0
    times = forecast_grid(
        cost,
        peak_flops_per_s=_AT_TOPS * TERA,
        bandwidth_bytes_per_s=_AT_GB_PER_S * GIGA,
        compute_efficiency_ratio=efficiencies,
        memory_efficiency_ratio=efficiencies[:, np.newaxis],
    )
    slope = cost.moved_bytes / (_AT_GB_PER_S * GIGA) / (cost.flops / (_AT_TOPS * TERA))
    return HeatPanel(
        title=variant,
        x=_GRID_PCT,
        y=_GRID_PCT,
        values=tuple(tuple(map(float, row)) for row in times.longer_s),
        boundary=balance_line(slope, _GRID_PCT, _GRID_PCT),
    )

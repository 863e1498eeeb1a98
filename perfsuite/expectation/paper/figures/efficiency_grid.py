"""Figure 5: the time to the first token, over both efficiencies of one device."""

from __future__ import annotations

import numpy as np

from perfsuite.expectation.paper.figures.bound_grid import balance_line
from perfsuite.expectation.paper.figures.wording import N_PROMPT, VARIANTS, long_prompt
from perfsuite.expectation.paper.table_row import GIGA, TERA
from perfsuite.expectation.requests.analytic import forecast_grid
from perfsuite.records.chart import Axis, HeatMap, HeatPanel

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
        x_axis=Axis(label="compute efficiency", unit="%"),
        y_axis=Axis(label="memory efficiency", unit="%"),
        colour_axis=Axis(label="time to first token", unit="s"),
        centre=None,
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

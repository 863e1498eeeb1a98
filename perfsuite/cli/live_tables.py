"""What ``perfsuite live`` prints."""

from __future__ import annotations

import json
from dataclasses import asdict

from rich.table import Table

from perfsuite.cli.commands import show
from perfsuite.records.live import LiveForecast, LiveLoss, LiveToken
from perfsuite.trace.live_watch import LiveWatch
from perfsuite.units import format_count, format_ns
from perfsuite.verdict.live_cost import LiveCostRun


def token_line(token: LiveToken, forecasts: tuple[LiveForecast, ...]) -> str:
    """Tell one token, and what follows from it."""
    told = "".join(
        f"  +{each.horizon} {format_ns(each.forecast_ns)} ({format_ns(each.lower_ns)} to {format_ns(each.upper_ns)})"
        for each in forecasts
    )
    return f"step {token.step:4d}  {format_ns(token.latency_ns):>8}  {token.tokens_per_s:7.1f} tokens/s{told}"


def loss_line(loss: LiveLoss) -> str:
    """Tell what did not arrive."""
    n_records = loss.n_records
    count = "an unknown number of records" if n_records is None else format_count(n_records, "record")
    return f"lost: {count} ({loss.where})"


def show_summary(watch: LiveWatch, *, as_json: bool) -> None:
    """Print how late the records were, and how far off the forecasts."""
    delays, errors = watch.delays(), watch.forecast_errors()
    if as_json:
        plain = {"delays": [asdict(each) for each in delays], "forecast_errors": [asdict(each) for each in errors]}
        print(json.dumps({"kind": "summary", **plain, "n_tokens": watch.n_tokens, "n_lost": watch.n_lost}))
        return
    table = Table("record", "n", "delay", "95 % within", box=None, pad_edge=False)
    for delay in delays:
        table.add_row(delay.name, str(delay.n_records), format_ns(delay.median_ns), format_ns(delay.p95_ns))
    show(table)
    table = Table(
        "steps ahead", "n", "median error", "95 % within", "in interval", "last step", "mean", box=None, pad_edge=False
    )
    for each in errors:
        percents = (each.median_percent, each.p95_percent)
        naive = (each.last_median_percent, each.mean_median_percent)
        within = None if each.within_ratio is None else each.within_ratio * 100.0
        cells = [_percent(value) for value in (*percents, within, *naive)]
        table.add_row(str(each.horizon), str(each.n_outcomes), *cells)
    show(table)


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f} %"


def show_cost(run: LiveCostRun, *, as_json: bool) -> None:
    """Print what a subscriber costs each phase."""
    overhead = run.overhead
    if as_json:
        costs = [{"phase": phase.value, **asdict(ratio)} for phase, ratio in overhead.ratios.items()]
        print(json.dumps({"costs": costs, "n_tokens": run.n_tokens, "n_discarded": overhead.n_discarded}, indent=1))
        return
    table = Table("phase", "median", "95 % bounds", "pairs", box=None, pad_edge=False)
    for phase, ratio in overhead.ratios.items():
        bounds = f"{_change(ratio.lower_ratio)} to {_change(ratio.upper_ratio)}"
        table.add_row(phase.value, _change(ratio.median_ratio), bounds, str(ratio.n_pairs))
    show(table)
    print(f"{format_count(run.n_tokens, 'token')} delivered, {format_count(overhead.n_discarded, 'pair')} left out")


def _change(ratio: float) -> str:
    return f"{(ratio - 1.0) * 100.0:+.2f} %"

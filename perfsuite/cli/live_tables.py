"""What ``perfsuite live`` prints."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from perfsuite.cli.answer import Answer, Part, Sheet, figure, percent
from perfsuite.experiments.overhead.live_cost import LiveCostRun
from perfsuite.records.live import LiveForecast, LiveLoss, LiveToken
from perfsuite.trace.live_watch import LiveWatch
from perfsuite.units import format_count, format_ns


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


def summary_plain(watch: LiveWatch) -> dict[str, Any]:
    """Return the record that ends the stream of records."""
    return {
        "kind": "summary",
        "delays": [asdict(each) for each in watch.delays()],
        "forecast_errors": [asdict(each) for each in watch.forecast_errors()],
        "n_tokens": watch.n_tokens,
        "n_lost": watch.n_lost,
    }


def summary_sheets(watch: LiveWatch) -> Iterator[Sheet]:
    """Yield how late the records were, and how far off the forecasts."""
    delays = [(each.name, each.n_records, format_ns(each.median_ns), format_ns(each.p95_ns)) for each in watch.delays()]
    yield Sheet(("record", "n", "delay", "95 % within"), delays)
    yield Sheet(
        ("steps ahead", "n", "median error", "95 % within", "in interval", "last step", "mean"),
        [
            (
                *(each.horizon, each.n_outcomes),
                *(figure("{:.1f} %", each.median_percent), figure("{:.1f} %", each.p95_percent)),
                *(percent(each.within_ratio), figure("{:.1f} %", each.last_median_percent)),
                figure("{:.1f} %", each.mean_median_percent),
            )
            for each in watch.forecast_errors()
        ],
    )


def cost_answer(run: LiveCostRun) -> Answer:
    """Return what a subscriber costs each phase."""
    overhead = run.overhead
    costs = [{"phase": phase.value, **asdict(ratio)} for phase, ratio in overhead.ratios.items()]
    return Answer(
        parts=lambda: _cost_parts(run),
        plain=lambda: {"costs": costs, "n_tokens": run.n_tokens, "n_discarded": overhead.n_discarded},
    )


def _cost_parts(run: LiveCostRun) -> Iterator[Part]:
    rows = [
        (
            *(phase.value, _change(ratio.median_ratio)),
            *(f"{_change(ratio.lower_ratio)} to {_change(ratio.upper_ratio)}", ratio.n_pairs),
        )
        for phase, ratio in run.overhead.ratios.items()
    ]
    yield Sheet(("phase", "median", "95 % bounds", "pairs"), rows)
    left_out = format_count(run.overhead.n_discarded, "pair")
    yield f"{format_count(run.n_tokens, 'token')} delivered, {left_out} left out"


def _change(ratio: float) -> str:
    return f"{(ratio - 1.0) * 100.0:+.2f} %"

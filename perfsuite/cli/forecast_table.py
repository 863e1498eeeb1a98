"""A forecast as a table and a sentence, for people."""

from __future__ import annotations

from collections.abc import Callable

from rich.markup import escape
from rich.table import Table

from perfsuite.cli.commands import show
from perfsuite.cli.forecast_answer import Answer
from perfsuite.cli.forecast_calibrated import CalibratedForecast
from perfsuite.expectation.requests.forecast import PhaseForecast
from perfsuite.units import NS_PER_S, format_bytes, format_ns


def print_forecast(answer: Answer) -> None:
    """Print what a person wants to know: a table by phase, where the operations are, and what bounds each phase."""
    show(_table(answer))
    prefill, decode = answer.forecast.prefill, answer.forecast.decode
    shares = sorted(prefill.cost.flops_shares.items(), key=lambda item: -item[1])
    print("operations of the prefill: " + ", ".join(f"{name} {share:.1%}" for name, share in shares if share >= 0.0005))
    if answer.calibrated is not None:
        print(_calibrated(answer.calibrated))
    print(f"the prefill is bound by {_bound(prefill)}; decode is bound by {_bound(decode)}")


def _calibrated(calibrated: CalibratedForecast) -> str:
    ttft, tpot = (
        f"{format_ns(each.expected_ns)} ({format_ns(each.lower_ns)} to {format_ns(each.upper_ns)})"
        for each in (calibrated.ttft, calibrated.tpot)
    )
    return f"by the calibration of {calibrated.recorded_at}: TTFT {ttft}, TPOT {tpot}; above, the ceilings alone"


def _table(answer: Answer) -> Table:
    forecast = answer.forecast
    columns = {
        "prefill": forecast.prefill,
        "decode, mean": forecast.decode,
        "first token": forecast.first,
        "last token": forecast.last,
    }
    weights = answer.variant or answer.optimisations.quantization or "the file's own types"
    title = f"{answer.architecture}, {weights}, {answer.n_prompt} + {forecast.n_gen} tokens, {answer.conventions.value}"
    table = Table(title=escape(title), title_justify="left", box=None, pad_edge=False)
    table.add_column("")
    for name in columns:
        table.add_column(name, justify="right", no_wrap=True)
    for name, tell in _COST_ROWS.items():
        table.add_row(name, *(tell(phase) for phase in columns.values()))
    table.add_row("KV cache", *_kv_cells(columns))
    for name, tell in _TIME_ROWS.items():
        table.add_row(name, *(tell(phase) for phase in columns.values()))
    table.add_row("tokens/s", "-", *(f"{phase.tokens_per_s:.3g}" for phase in list(columns.values())[1:]))
    _add_utilisation(table, answer)
    if forecast.energy_j is not None:
        table.add_row("energy of all", f"{forecast.energy_j:.4g} J")
    return table


_Rows = dict[str, Callable[[PhaseForecast], str]]

_COST_ROWS: _Rows = {
    "operations": lambda phase: f"{phase.cost.total.flops:.4g}",
    "read": lambda phase: format_bytes(phase.cost.total.read_bytes),
    "written": lambda phase: format_bytes(phase.cost.total.written_bytes),
    "dispatches": lambda phase: str(phase.cost.total.n_dispatches),
}

_TIME_ROWS: _Rows = {
    "computing": lambda phase: _seconds(phase.compute_s),
    "moving": lambda phase: _seconds(phase.memory_s),
    "bound": lambda phase: phase.bound.value,
    "dispatch share": lambda phase: f"{phase.dispatch_share_ratio:.1%}",
    "TTFT, TPOT": lambda phase: _seconds(phase.time_s),
}


def _kv_cells(columns: dict[str, PhaseForecast]) -> list[str]:
    prefill, *steps = columns.values()
    n_bytes = [prefill.cost.total.kv_written_bytes, *(step.cost.total.kv_bytes for step in steps)]
    return [format_bytes(each) for each in n_bytes]


def _add_utilisation(table: Table, answer: Answer) -> None:
    prefill = answer.utilisation_of(answer.forecast.prefill, answer.measured_ttft_s)
    decode = answer.utilisation_of(answer.forecast.decode, answer.measured_tpot_s)
    if prefill is None and decode is None:
        return
    for name in ("mbu", "mfu"):
        cells = ("-" if use is None else f"{getattr(use, name):.1%}" for use in (prefill, decode))
        table.add_row(f"measured {name.upper()}", *cells)


def _bound(phase: PhaseForecast) -> str:
    return f"{phase.bound.value} ({_seconds(phase.compute_s)} computing, {_seconds(phase.memory_s)} moving)"


def _seconds(time_s: float) -> str:
    return format_ns(time_s * NS_PER_S)

"""A forecast with all that was asked, as the command answers it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from perfsuite.cli.answer import Answer, Part, Sheet, fields_of
from perfsuite.expectation.requests.analytic import Conventions, DeviceRates
from perfsuite.expectation.requests.forecast import PhaseForecast, RequestForecast, Utilisation, utilisation
from perfsuite.expectation.requests.subject import Optimisations
from perfsuite.expectation.speculation import Speculation
from perfsuite.expectation.timing.engine_times import TimeForecast
from perfsuite.units import NS_PER_S, format_bytes, format_ns


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibratedForecast:
    """Times of the evaluation of the prompt, and of one token in the middle of the generation."""

    recorded_at: str
    ttft: TimeForecast
    tpot: TimeForecast


def is_covered(optimisations: Optimisations, conventions: Conventions) -> bool:
    """Whether llama.cpp runs it for one sequence, which calibrations are of: its conventions, without tiles."""
    return conventions is Conventions.ENGINE and optimisations.n_sequences == 1 and optimisations.tile == 1


@dataclass(frozen=True, slots=True)
class SpeculationForecast:
    """Whether a draft pays: what a token takes without it, and with it at the acceptance that is asked for."""

    speculation: Speculation
    plain_s: float
    drafted_s: float

    @property
    def speedup_ratio(self) -> float:
        return self.plain_s / self.drafted_s

    @property
    def break_even_ratio(self) -> float | None:
        """The acceptance from which the draft pays; None where it never does."""
        round_s = self.drafted_s * self.speculation.tokens_per_round
        return self.speculation.break_even_ratio(round_s / self.plain_s)

    def sentence(self) -> str:
        least, asked = self.break_even_ratio, self.speculation.acceptance_ratio
        pays = f"does not pay below an acceptance of {least:.2f}" if least else "pays at any acceptance"
        pays = "pays at no acceptance" if least is None else pays
        return f"the draft {pays}; at {asked:.2f} decode is {self.speedup_ratio:.2f} times as fast as without"


@dataclass(frozen=True, kw_only=True)
class AskedForecast:
    """A forecast with all that was asked."""

    architecture: str
    #: What its config has and the model has not, in words.
    left_out: tuple[str, ...]
    device: str | None
    conventions: Conventions
    optimisations: Optimisations
    draft: str | None
    n_prompt: int
    rates: DeviceRates
    forecast: RequestForecast
    speculated: SpeculationForecast | None
    calibrated: CalibratedForecast | None
    measured_ttft_s: float | None
    measured_tpot_s: float | None

    def utilisation_of_all(self) -> Utilisation | None:
        """Return MBU and MFU over all that was measured: the prefill, the decode steps, or both."""
        prefill_s, tpot_s, n_gen = self.measured_ttft_s, self.measured_tpot_s, self.forecast.n_gen
        prefill, decode = self.forecast.prefill.cost.total, self.forecast.decode.cost.total * n_gen
        if tpot_s is None:
            return None if prefill_s is None else utilisation(prefill, prefill_s, self.rates)
        if prefill_s is None:
            return utilisation(decode, tpot_s * n_gen, self.rates)
        return utilisation(prefill + decode, prefill_s + tpot_s * n_gen, self.rates)

    @property
    def uses(self) -> tuple[Utilisation | None, Utilisation | None]:
        """MBU and MFU of the prefill and of decode; None where it was not measured."""
        measured = ((self.forecast.prefill, self.measured_ttft_s), (self.forecast.decode, self.measured_tpot_s))
        prefill, decode = (
            None if measured_s is None else utilisation(phase.cost.total, measured_s, self.rates)
            for phase, measured_s in measured
        )
        return prefill, decode


def forecast_answer(asked: AskedForecast) -> Answer:
    """Return a table by phase, where the operations are, and what bounds each phase; as JSON every figure."""
    return Answer(parts=_parts(asked), plain=_plain(asked))


def _plain(asked: AskedForecast) -> dict[str, Any]:
    """Return the forecast as JSON has it: operations, bytes and dispatches are integers, times are seconds."""
    forecast, optimisations, rates = asked.forecast, asked.optimisations, asked.rates
    prefill_use, decode_use = map(_plain_use, asked.uses)
    steps = {"first": _plain_step(forecast.first), "last": _plain_step(forecast.last)}
    return {
        "architecture": asked.architecture,
        "left_out": asked.left_out,
        "variant": optimisations.variant and optimisations.variant.name,
        "conventions": asked.conventions.value,
        "n_prompt": asked.n_prompt,
        "n_new_tokens": forecast.n_gen,
        **fields_of(optimisations, "quantization", "kv_type", "chunk", "tile", "lora_merged"),
        "batch": optimisations.n_sequences,
        "lora_rank": optimisations.adapter_rank,
        "draft": asked.draft,
        "hardware": {
            "device": asked.device,
            **fields_of(rates, "peak_flops_per_s", "bandwidth_bytes_per_s", "dispatch_s", "power_w"),
            "compute_efficiency_ratio": rates.compute_efficiency_ratio,
            "memory_efficiency_ratio": rates.memory_efficiency_ratio,
        },
        "prefill": _plain_prefill(forecast.prefill) | prefill_use,
        "decode": _plain_step(forecast.decode) | steps | decode_use,
        "end_to_end_s": forecast.end_to_end_s,
        "energy_j": forecast.energy_j,
        "speculation": None
        if asked.speculated is None
        else fields_of(asked.speculated, "break_even_ratio", "speedup_ratio"),
        "calibrated": _plain_calibrated(asked.calibrated),
    } | _plain_use(asked.utilisation_of_all())


def _plain_calibrated(calibrated: CalibratedForecast | None) -> dict[str, Any] | None:
    if calibrated is None:
        return None
    latencies = {"ttft_s": calibrated.ttft, "tpot_s": calibrated.tpot}
    ends = ("expected", "lower", "upper")
    bounds = {name: {end: getattr(each, f"{end}_ns") / NS_PER_S for end in ends} for name, each in latencies.items()}
    return {"recorded_at": calibrated.recorded_at, **bounds}


def _plain_prefill(phase: PhaseForecast) -> dict[str, Any]:
    """The cache after the prompt is what the prefill has written into it."""
    return _plain_phase(phase, "kv_written_bytes") | {"shares": phase.cost.flops_shares, "ttft_s": phase.time_s}


def _plain_step(phase: PhaseForecast) -> dict[str, Any]:
    return _plain_phase(phase, "kv_bytes") | {"tpot_s": phase.time_s, "tokens_per_s": phase.tokens_per_s}


def _plain_phase(phase: PhaseForecast, cached: str) -> dict[str, Any]:
    cost = phase.cost.total
    return {
        "ops": cost.flops,
        "bytes": cost.moved_bytes,
        "read_bytes": cost.read_bytes,
        "write_bytes": cost.written_bytes,
        "dispatches": cost.n_dispatches,
        **fields_of(phase, "compute_s", "memory_s", "dispatch_s"),
        "dispatch_share": phase.dispatch_share_ratio,
        "bound": phase.bound.value,
        **dict(zip(("kv_bytes", "state_bytes"), _cached(phase, cached), strict=True)),
    }


def _plain_use(use: Utilisation | None) -> dict[str, float]:
    return {} if use is None else {"mbu": use.mbu, "mfu": use.mfu}


def _parts(asked: AskedForecast) -> Iterator[Part]:
    forecast, calibrated = asked.forecast, asked.calibrated
    optimisations = asked.optimisations
    named = optimisations.variant.name if optimisations.variant else optimisations.quantization
    weights = named or "the file's own types"
    title = f"{asked.architecture}, {weights}, {asked.n_prompt} + {forecast.n_gen} tokens, {asked.conventions.value}"
    yield from asked.left_out
    yield Sheet(("", ">prefill", ">decode, mean", ">first token", ">last token"), list(_rows(asked)), title)
    shares = sorted(forecast.prefill.cost.flops_shares.items(), key=lambda item: -item[1])
    text = ", ".join(f"{name} {share:.1%}" for name, share in shares if share >= 0.0005)
    yield f"operations of the prefill: {text}"
    if calibrated is not None:
        ttft, tpot = (
            f"{format_ns(each.expected_ns)} ({format_ns(each.lower_ns)} to {format_ns(each.upper_ns)})"
            for each in (calibrated.ttft, calibrated.tpot)
        )
        yield f"by the calibration of {calibrated.recorded_at}: TTFT {ttft}, TPOT {tpot}; above, the ceilings alone"
    elif asked.device is not None and asked.draft is None and is_covered(asked.optimisations, asked.conventions):
        yield (
            f"no calibration of {asked.device} with its llama.cpp is kept: the ceilings alone, without an interval; "
            f"'perfsuite calibrate --device={asked.device}' makes one"
        )
    if asked.speculated is not None:
        yield asked.speculated.sentence()
    yield f"the prefill is bound by {_bound(forecast.prefill)}; decode is bound by {_bound(forecast.decode)}"


def _rows(asked: AskedForecast) -> Iterator[tuple[str, ...]]:
    forecast = asked.forecast
    steps = (forecast.decode, forecast.first, forecast.last)
    phases = (forecast.prefill, *steps)
    cached = (_cached(forecast.prefill, "kv_written_bytes"), *(_cached(step, "kv_bytes") for step in steps))
    yield from ((name, *map(tell, phases)) for name, tell in _COST_ROWS.items())
    for name, n_bytes in zip(("KV cache", "recurrent states"), zip(*cached, strict=True), strict=True):
        if name == "KV cache" or any(n_bytes):
            yield (name, *map(format_bytes, n_bytes))
    yield from ((name, *map(tell, phases)) for name, tell in _TIME_ROWS.items())
    yield ("tokens/s", "-", *(f"{step.tokens_per_s:.3g}" for step in steps))
    if any(use is not None for use in asked.uses):
        for name in ("mbu", "mfu"):
            cells = ("-" if use is None else f"{getattr(use, name):.1%}" for use in asked.uses)
            yield (f"measured {name.upper()}", *cells)
    if forecast.energy_j is not None:
        yield "energy of all", f"{forecast.energy_j:.4g} J"


def _cached(phase: PhaseForecast, which: str) -> tuple[int, int]:
    """Return the bytes of keys and values, and those of recurrent states, which the engine keeps in its cache, too."""
    found = {name.removeprefix("draft_"): 0 for name in phase.cost.by_operator}
    for name, cost in phase.cost.by_operator.items():
        found[name.removeprefix("draft_")] += getattr(cost, which)
    state_bytes = sum(found.get(kind, 0) for kind in _STATE_KINDS)
    return sum(found.values()) - state_bytes, state_bytes


#: What reads and writes recurrent states, and no keys and values.
_STATE_KINDS = ("gather", "copy", "convolution", "recurrence")


def _bound(phase: PhaseForecast) -> str:
    return f"{phase.bound.value} ({_seconds(phase.compute_s)} computing, {_seconds(phase.memory_s)} moving)"


def _seconds(time_s: float) -> str:
    return format_ns(time_s * NS_PER_S)


_COST_ROWS: Mapping[str, Callable[[PhaseForecast], str]] = {
    "operations": lambda phase: f"{phase.cost.total.flops:.4g}",
    "read": lambda phase: format_bytes(phase.cost.total.read_bytes),
    "written": lambda phase: format_bytes(phase.cost.total.written_bytes),
    "dispatches": lambda phase: str(phase.cost.total.n_dispatches),
}

_TIME_ROWS: Mapping[str, Callable[[PhaseForecast], str]] = {
    "computing": lambda phase: _seconds(phase.compute_s),
    "moving": lambda phase: _seconds(phase.memory_s),
    "bound": lambda phase: phase.bound.value,
    "dispatch share": lambda phase: f"{phase.dispatch_share_ratio:.1%}",
    "TTFT, TPOT": lambda phase: _seconds(phase.time_s),
}

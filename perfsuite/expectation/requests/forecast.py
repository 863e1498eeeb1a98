"""The forecast of a request on a device: TTFT, TPOT and what bounds them, energy and utilisation."""

from __future__ import annotations

from dataclasses import dataclass

from perfsuite.expectation.requests.analytic import (
    Bound,
    Conventions,
    DeviceRates,
    PassTimes,
    pass_times,
    tpot_s,
)
from perfsuite.expectation.requests.composition import RequestCost
from perfsuite.records.op_cost import OpCost, PassCost


@dataclass(frozen=True, kw_only=True)
class PhaseForecast:
    """What a prefill, a decode step, or the mean of many of them costs and takes."""

    cost: PassCost
    #: LIFE's t_c and t_m, each with the dispatches, which are `dispatch_s` of it.
    compute_s: float
    memory_s: float
    dispatch_s: float
    bound: Bound
    #: TTFT or TPOT.
    time_s: float

    @property
    def dispatch_share_ratio(self) -> float:
        """The part of the time that is dispatches."""
        return self.dispatch_s / self.time_s

    @property
    def tokens_per_s(self) -> float:
        """TPS = 1 / TPOT, of one sequence; meant for decode."""
        return 1.0 / self.time_s


@dataclass(frozen=True, kw_only=True)
class RequestForecast:
    """A request, in full."""

    n_gen: int
    prefill: PhaseForecast
    #: The mean over the steps of the generation.
    decode: PhaseForecast
    first: PhaseForecast
    last: PhaseForecast
    #: Power times the time of the whole request; None where the power is not known.
    energy_j: float | None

    @property
    def end_to_end_s(self) -> float:
        """TTFT and all decode steps."""
        return self.prefill.time_s + self.n_gen * self.decode.time_s


@dataclass(frozen=True, slots=True, kw_only=True)
class Utilisation:
    """How much of the peaks a measurement used."""

    #: Bytes over measured time x peak bandwidth.
    mbu: float
    #: Operations over measured time x peak operations a second.
    mfu: float


def forecast_request(cost: RequestCost, rates: DeviceRates, conventions: Conventions) -> RequestForecast:
    """Forecast a request: TTFT = max(t_c, t_m) of the prefill, TPOT by the conventions for each decode step.

    The decode figures are means over all steps, and so is TPOT. *Source*: LIFE, section 3.
    """
    prefill_times = pass_times(cost.prefill.by_operator, rates)
    step_times = pass_times(cost.decode.by_operator, rates)
    step_s = tpot_s(step_times, conventions)
    prefill = _phase(cost.prefill, prefill_times, float(prefill_times.longer_s))
    decode = _phase(cost.decode.mean(), step_times.mean(), float(step_s.mean()))
    first, last = (
        _phase(cost.decode.at(step), step_times.at(step), float(step_s[step])) for step in (0, cost.n_gen - 1)
    )
    total_s = prefill.time_s + cost.n_gen * decode.time_s
    return RequestForecast(
        n_gen=cost.n_gen,
        prefill=prefill,
        decode=decode,
        first=first,
        last=last,
        energy_j=None if rates.power_w is None else rates.power_w * total_s,
    )


def utilisation(cost: OpCost, measured_s: float, rates: DeviceRates) -> Utilisation:
    """Return MBU and MFU of a pass, or of several together, that was measured."""
    return Utilisation(
        mbu=cost.moved_bytes / (measured_s * rates.bandwidth_bytes_per_s),
        mfu=cost.flops / (measured_s * rates.peak_flops_per_s),
    )


def _phase(cost: PassCost, times: PassTimes, time_s: float) -> PhaseForecast:
    return PhaseForecast(
        cost=cost,
        compute_s=float(times.compute_s),
        memory_s=float(times.memory_s),
        dispatch_s=float(times.dispatch_s),
        bound=times.bound,
        time_s=time_s,
    )

"""A forecast with all that was asked, and the utilisation that measurements show."""

from __future__ import annotations

from dataclasses import dataclass

from perfsuite.cli.forecast_calibrated import CalibratedForecast
from perfsuite.expectation.op_cost import OpCost
from perfsuite.expectation.requests.analytic import Conventions
from perfsuite.expectation.requests.forecast import PhaseForecast, RequestForecast, Utilisation, utilisation
from perfsuite.expectation.requests.optimisations import Optimisations
from perfsuite.expectation.requests.rates import DeviceRates


@dataclass(frozen=True, kw_only=True)
class Answer:
    """A forecast with all that was asked."""

    architecture: str
    device: str | None
    conventions: Conventions
    optimisations: Optimisations
    draft: str | None
    n_prompt: int
    rates: DeviceRates
    forecast: RequestForecast
    calibrated: CalibratedForecast | None
    measured_ttft_s: float | None
    measured_tpot_s: float | None

    @property
    def variant(self) -> str | None:
        """Name of the variant; None where the weights alone say what runs."""
        variant = self.optimisations.variant
        return None if variant is None else variant.name

    def utilisation_of(self, phase: PhaseForecast, measured_s: float | None) -> Utilisation | None:
        """Return MBU and MFU of a phase; None where it was not measured."""
        return None if measured_s is None else utilisation(phase.cost.total, measured_s, self.rates)

    def utilisation_of_all(self) -> Utilisation | None:
        """Return MBU and MFU over all that was measured: the prefill, the decode steps, or both."""
        parts: list[tuple[OpCost, float]] = []
        if self.measured_ttft_s is not None:
            parts.append((self.forecast.prefill.cost.total, self.measured_ttft_s))
        if self.measured_tpot_s is not None:
            n_gen = self.forecast.n_gen
            parts.append((self.forecast.decode.cost.total * n_gen, self.measured_tpot_s * n_gen))
        if not parts:
            return None
        (cost, measured_s), *others = parts
        for other, seconds in others:
            cost, measured_s = cost + other, measured_s + seconds
        return utilisation(cost, measured_s, self.rates)

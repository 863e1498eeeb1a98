"""The forecast of a request from this machine's calibration, with its interval."""

from __future__ import annotations

from dataclasses import dataclass

from perfsuite.cli.kept_folders import user_cache
from perfsuite.device.fingerprint import host_fingerprint
from perfsuite.device.threads import default_threads
from perfsuite.expectation.cases import N_UBATCH, LlamaWorkload
from perfsuite.expectation.graph import KV_PADDING
from perfsuite.expectation.operators.tiling import padded
from perfsuite.expectation.requests.analytic import Conventions
from perfsuite.expectation.requests.engine_variant import engine_request
from perfsuite.expectation.requests.optimisations import Optimisations
from perfsuite.expectation.requests.subject import Subject
from perfsuite.expectation.timing.engine_times import EngineTimes, TimeForecast, phase_shapes
from perfsuite.measure.calibration_store import find_calibration
from perfsuite.measure.launch import environment_engine
from perfsuite.records.events import Phase
from perfsuite.workload.scenario import Scenario

#: The only device that this process can have calibrated.
_HOST = "host"


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibratedForecast:
    """Times of the evaluation of the prompt, and of one token in the middle of the generation."""

    recorded_at: str
    ttft: TimeForecast
    tpot: TimeForecast


def calibrated_forecast(
    device: str | None,
    subject: Subject,
    optimisations: Optimisations,
    conventions: Conventions,
    *,
    n_prompt: int,
    n_gen: int,
) -> CalibratedForecast | None:
    """Forecast a request from the stored calibration; None where there is none or it does not cover the request.

    It covers what llama.cpp runs for one sequence: the engine's conventions, without tiles.
    """
    if device != _HOST or conventions is not Conventions.ENGINE:
        return None
    if optimisations.n_sequences > 1 or optimisations.tile > 1:
        return None
    n_threads, cache_dir = default_threads(), user_cache()
    calibration = find_calibration(host_fingerprint(), environment_engine().build_id, n_threads, cache_dir)
    if calibration is None:
        return None
    times, workload = EngineTimes(calibration), _workload(subject, optimisations, n_prompt, n_gen)
    ttft, tpot = (times.phase(phase_shapes(workload, phase), phase.value) for phase in (Phase.PREFILL, Phase.DECODE))
    return CalibratedForecast(recorded_at=calibration.recorded_at, ttft=ttft, tpot=tpot)


def _workload(subject: Subject, optimisations: Optimisations, n_prompt: int, n_gen: int) -> LlamaWorkload:
    request = engine_request(subject, optimisations)
    scenario = Scenario(name="forecast", n_prompt=n_prompt, n_gen=n_gen, source="given by its lengths")
    return request.workload(
        scenario, n_ctx=padded(scenario.n_ctx, KV_PADDING), n_ubatch=optimisations.chunk or N_UBATCH
    )

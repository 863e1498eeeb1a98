"""A forecast as JSON, for programs."""

from __future__ import annotations

from typing import Any

from perfsuite.cli.forecast_answer import Answer
from perfsuite.cli.forecast_calibrated import CalibratedForecast
from perfsuite.expectation.requests.forecast import PhaseForecast, Utilisation
from perfsuite.units import NS_PER_S


def to_plain(answer: Answer) -> dict[str, Any]:
    """Return the forecast as JSON has it: operations, bytes and dispatches are integers, times are seconds."""
    forecast, optimisations = answer.forecast, answer.optimisations
    prefill_use = answer.utilisation_of(forecast.prefill, answer.measured_ttft_s)
    decode_use = answer.utilisation_of(forecast.decode, answer.measured_tpot_s)
    return {
        "architecture": answer.architecture,
        "variant": answer.variant,
        "conventions": answer.conventions.value,
        "n_prompt": answer.n_prompt,
        "n_new_tokens": forecast.n_gen,
        "quantization": optimisations.quantization,
        "kv_type": optimisations.kv_type,
        "batch": optimisations.n_sequences,
        "chunk": optimisations.chunk,
        "tile": optimisations.tile,
        "lora_rank": optimisations.adapter_rank,
        "lora_merged": optimisations.lora_merged,
        "draft": answer.draft,
        "hardware": _plain_hardware(answer),
        "prefill": _plain_prefill(forecast.prefill) | _plain_use(prefill_use),
        "decode": _plain_step(forecast.decode)
        | {"first": _plain_step(forecast.first), "last": _plain_step(forecast.last)}
        | _plain_use(decode_use),
        "end_to_end_s": forecast.end_to_end_s,
        "energy_j": forecast.energy_j,
        "calibrated": _plain_calibrated(answer.calibrated),
    } | _plain_use(answer.utilisation_of_all())


def _plain_calibrated(calibrated: CalibratedForecast | None) -> dict[str, Any] | None:
    if calibrated is None:
        return None
    latencies = {"ttft_s": calibrated.ttft, "tpot_s": calibrated.tpot}
    return {"recorded_at": calibrated.recorded_at} | {
        name: {
            "expected": each.expected_ns / NS_PER_S,
            "lower": each.lower_ns / NS_PER_S,
            "upper": each.upper_ns / NS_PER_S,
        }
        for name, each in latencies.items()
    }


def _plain_hardware(answer: Answer) -> dict[str, Any]:
    rates = answer.rates
    return {
        "device": answer.device,
        "peak_flops_per_s": rates.peak_flops_per_s,
        "bandwidth_bytes_per_s": rates.bandwidth_bytes_per_s,
        "compute_efficiency_ratio": rates.efficiency.compute_ratio,
        "memory_efficiency_ratio": rates.efficiency.memory_ratio,
        "dispatch_s": rates.dispatch_s,
        "power_w": rates.power_w,
    }


def _plain_prefill(phase: PhaseForecast) -> dict[str, Any]:
    """The cache after the prompt is what the prefill has written into it."""
    kv_bytes = phase.cost.total.kv_written_bytes
    return _plain_phase(phase) | {"kv_bytes": kv_bytes, "shares": phase.cost.flops_shares, "ttft_s": phase.time_s}


def _plain_step(phase: PhaseForecast) -> dict[str, Any]:
    return _plain_phase(phase) | {
        "kv_bytes": phase.cost.total.kv_bytes,
        "tpot_s": phase.time_s,
        "tokens_per_s": phase.tokens_per_s,
    }


def _plain_phase(phase: PhaseForecast) -> dict[str, Any]:
    cost = phase.cost.total
    return {
        "ops": cost.flops,
        "bytes": cost.moved_bytes,
        "read_bytes": cost.read_bytes,
        "write_bytes": cost.written_bytes,
        "dispatches": cost.n_dispatches,
        "compute_s": phase.compute_s,
        "memory_s": phase.memory_s,
        "dispatch_s": phase.dispatch_s,
        "dispatch_share": phase.dispatch_share_ratio,
        "bound": phase.bound.value,
    }


def _plain_use(use: Utilisation | None) -> dict[str, float]:
    return {} if use is None else {"mbu": use.mbu, "mfu": use.mfu}

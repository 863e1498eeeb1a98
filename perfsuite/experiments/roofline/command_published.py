"""What papers published of devices, and what of it contradicts itself: as JSON, or as a table and sentences."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from perfsuite.cli.answer import Answer, Part, Sheet, figure
from perfsuite.expectation.requests.analytic import BYTES_PER_GB, OPS_PER_TOPS
from perfsuite.expectation.roofline.ceiling import Resource
from perfsuite.expectation.roofline.published import (
    Contradiction,
    HeldRate,
    PublishedDevice,
    PublishedRate,
    SuspectPair,
    contradictions,
    hold,
    published_devices,
    published_rates,
    suspect_pairs,
)

_UNITS = {Resource.BANDWIDTH: (BYTES_PER_GB, "GB/s"), Resource.COMPUTE: (OPS_PER_TOPS, "TFLOPS")}


def published_answer() -> Answer:
    """Return the devices with what contradicts them, the rates with what they need, and the suspect ones."""
    return Answer(parts=_parts, plain=_plain)


def _plain() -> dict[str, Any]:
    rates, devices = published_rates(), published_devices()
    held = hold(rates, devices)
    return {
        "devices": [_device_plain(device, held) for device in devices],
        "rates": [_rate_plain(each) for each in held],
        "suspects": [
            {"shorter": _where(pair.shorter), "longer": _where(pair.longer), "ratio": pair.ratio}
            for pair in suspect_pairs(rates)
        ],
    }


def _parts() -> Iterator[Part]:
    rates, devices = published_rates(), published_devices()
    held = hold(rates, devices)
    yield _sheet(devices, held)
    yield from map(_sentence, contradictions(held))
    yield from map(_suspicion, suspect_pairs(rates))
    yield _left_out(held)


def _device_plain(device: PublishedDevice, held: tuple[HeldRate, ...]) -> dict[str, Any]:
    worst = _worst(device, held)
    return {
        **asdict(device),
        "sources": dict(device.sources),
        "corrected_bandwidth_bytes_per_s": device.corrected_bandwidth_bytes_per_s,
        "ridge_point": device.roof.ridge_point if device.roof else None,
        "measured_ridge_point": device.measured_roof.ridge_point if device.measured_roof else None,
        "is_contradicted": _is_contradicted(device, held),
        "contradicted_resource": worst.resource.value if worst else None,
        "contradicted_by_ratio": worst.excess_ratio if worst else None,
    }


def _rate_plain(held: HeldRate) -> dict[str, Any]:
    unit = "bytes_per_s" if held.resource is Resource.BANDWIDTH else "flops_per_s"
    return {
        **asdict(held.rate),
        "phase": held.rate.phase.value,
        f"needed_{unit}": held.needed_per_s,
        "missing": held.missing,
        "excess_ratios": {name: held.excess_ratio(name) for name in held.ceilings},
        "is_contradicted": held.is_contradicted,
    }


def _sheet(devices: tuple[PublishedDevice, ...], held: tuple[HeldRate, ...]) -> Sheet:
    rows = []
    for each in devices:
        bandwidths = (
            each.theoretical_bandwidth_bytes_per_s,
            each.measured_bandwidth_bytes_per_s,
            each.corrected_bandwidth_bytes_per_s,
        )
        peaks = (each.theoretical_fp32_flops_per_s, each.measured_fp32_flops_per_s)
        ridges = [roof.ridge_point if roof else None for roof in (each.roof, each.measured_roof)]
        worst = _worst(each, held)
        scaled = [(value, BYTES_PER_GB) for value in bandwidths]
        scaled += [*((value, OPS_PER_TOPS) for value in peaks), *((value, 1.0) for value in ridges)]
        figures = (figure("{:.2f}", value and value / scale) for value, scale in scaled)
        rows.append((each.name, each.paper, *figures, worst and f"{worst.excess_ratio:.2f}x"))
    headings = (">GB/s", ">meas.", ">corr.", ">FP32", ">meas.", ">ridge", ">meas.", ">over")
    return Sheet(("device", "paper", *headings), rows)


def _sentence(found: Contradiction) -> str:
    scale, unit = _UNITS[found.resource]
    worst, rate = found.worst, found.worst.rate
    assert worst.needed_per_s is not None
    ceilings = ", ".join(f"{name} {per_s / scale:.2f}" for name, per_s in worst.ceilings.items())
    return (
        f"{found.device}: {rate.architecture} {rate.quantization} at {rate.rate_tokens_per_s:g} tokens/s "
        f"({rate.phase.value}, {rate.scenario}) needs at least {worst.needed_per_s / scale:.2f} {unit} ({ceilings}), "
        f"{found.excess_ratio:.2f} times the measured ceiling, which {found.n_contradicted} of {found.n_held} rates "
        "contradict"
    )


def _suspicion(pair: SuspectPair) -> str:
    return (
        f"Suspect: {_where(pair.shorter)} has {pair.shorter.tokens_per_s:g} tokens/s, {pair.longer.scenario} with its "
        f"longer prompt {pair.longer.tokens_per_s:g}"
    )


def _left_out(held: tuple[HeldRate, ...]) -> str:
    without = [each for each in held if each.needed_per_s is None]
    named = dict.fromkeys(f"{each.rate.architecture} {each.rate.quantization}" for each in without)
    unmeasured = [each for each in held if each.needed_per_s is not None and each.is_contradicted is None]
    devices = dict.fromkeys(str(each.rate.device) for each in unmeasured)
    n_held = len(held) - len(without) - len(unmeasured)
    return (
        f"{n_held} of {len(held)} rates are compared with a measured ceiling. Of {len(without)} the need is not known: "
        f"{', '.join(named) or 'none'}. Of {len(unmeasured)} no measured ceiling is published: "
        f"{', '.join(devices) or 'none'}"
    )


def _where(rate: PublishedRate) -> str:
    parts = (rate.device, rate.architecture, rate.quantization, rate.scenario, rate.phase.value)
    return " ".join(part for part in parts if part)


def _worst(device: PublishedDevice, held: tuple[HeldRate, ...]) -> Contradiction | None:
    found = [each for each in contradictions(held) if each.device == device.name]
    return max(found, key=lambda each: each.excess_ratio) if found else None


def _is_contradicted(device: PublishedDevice, held: tuple[HeldRate, ...]) -> bool | None:
    """Return None where no rate could be compared with a measured ceiling of the device."""
    if _worst(device, held):
        return True
    own = [each for each in held if each.rate.device == device.name and each.is_contradicted is not None]
    return False if own else None

"""The device of a forecast: figures given one by one, or the ceilings that this machine has shown."""

from __future__ import annotations

import argparse

from perfsuite.cli.kept_folders import user_cache
from perfsuite.device.fingerprint import host_fingerprint
from perfsuite.device.profile import profile_names
from perfsuite.device.threads import default_threads
from perfsuite.errors import DeviceError, PerfsuiteError
from perfsuite.expectation.requests.rates import (
    BYTES_PER_GB,
    OPS_PER_TOPS,
    S_PER_US,
    DeviceRates,
    rates_of,
)
from perfsuite.measure.ceiling_store import stored_ceilings
from perfsuite.units import NS_PER_S

#: The profile of the machine itself, the only one whose ceilings are measured here.
_HOST = "host"


def add_device_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that say what the device gives."""
    group = parser.add_argument_group("device", "either --device, or --tops and --bandwidth")
    group.add_argument("--device", metavar="NAME", help="a device profile; 'host' has the ceilings measured before")
    group.add_argument("--tops", type=float, metavar="T", help="peak, in 1e12 operations a second")
    group.add_argument("--bandwidth", type=float, metavar="B", help="memory bandwidth, in GB/s of 1e9 bytes a second")
    for part, peak in (("compute", "operations a second"), ("memory", "bandwidth")):
        text = f"share of the {peak} reached (default 1)"
        group.add_argument(f"--{part}-efficiency", type=float, default=1.0, metavar="E", help=text)
    group.add_argument("--dispatch-us", type=float, metavar="X", help="cost of a dispatch (default 0; host: measured)")
    group.add_argument("--power-w", type=float, metavar="P", help="power while it computes, for the energy")


def device_rates(options: argparse.Namespace) -> DeviceRates:
    """Return what the device of the options gives; a missing, doubled or impossible figure is a PerfsuiteError."""
    figures = {"--tops": options.tops, "--bandwidth": options.bandwidth}
    given = [name for name, value in figures.items() if value is not None]
    if options.device is not None:
        if given:
            raise PerfsuiteError(f"--device={options.device} with {' and '.join(given)}: expected one or the other")
        return _rates(options, *_profile_figures(options.device))
    missing = [name for name in figures if name not in given]
    if missing:
        raise PerfsuiteError(f"{' and '.join(missing)}: missing; expected --tops and --bandwidth, or --device")
    return _rates(options, options.tops, options.bandwidth, 0.0)


def _rates(options: argparse.Namespace, tops: float, bandwidth_gb_per_s: float, dispatch_us: float) -> DeviceRates:
    return rates_of(
        tops=tops,
        bandwidth_gb_per_s=bandwidth_gb_per_s,
        compute_efficiency=options.compute_efficiency,
        memory_efficiency=options.memory_efficiency,
        dispatch_us=dispatch_us if options.dispatch_us is None else options.dispatch_us,
        power_w=options.power_w,
    )


def _profile_figures(name: str) -> tuple[float, float, float]:
    """Return TOPS, GB/s and microseconds a dispatch of a profile."""
    if name not in profile_names():
        known = ", ".join(profile_names())
        raise DeviceError(f"--device={name}: no such device; known are {known}, or give --tops and --bandwidth instead")
    if name != _HOST:
        raise DeviceError(
            f"--device={name}: forecasts stand on measured ceilings, and only those of this machine are looked up; "
            f"give --tops and --bandwidth ('perfsuite devices show {name}' has the data sheet's)"
        )
    n_threads = default_threads()
    ceilings = stored_ceilings(host_fingerprint(), n_threads, user_cache())
    if ceilings is None:
        raise DeviceError(
            f"--device={name}: no ceilings of this machine with {n_threads} threads are stored; measure them with "
            "'perfsuite calibrate' or 'pytest --device=host', or give --tops and --bandwidth"
        )
    return (
        ceilings.fp32_flops_per_s / OPS_PER_TOPS,
        ceilings.bandwidths[-1].read_bytes_per_s / BYTES_PER_GB,
        ceilings.dispatch_ns / NS_PER_S / S_PER_US,
    )

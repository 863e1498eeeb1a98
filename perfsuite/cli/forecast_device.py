"""The device of a forecast: two figures, or what is kept of a machine that was measured."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import dataclass, replace

from perfsuite.cli.kept_folders import user_cache
from perfsuite.device.fingerprint import host_fingerprint
from perfsuite.device.machine import default_threads
from perfsuite.device.profile import Profile, find_profile, profile_names, unknown_device
from perfsuite.errors import DeviceError, PerfsuiteError
from perfsuite.expectation.requests.analytic import BYTES_PER_GB, OPS_PER_TOPS, S_PER_US, DeviceRates, rates_of
from perfsuite.expectation.timing.calibration import Calibration
from perfsuite.measure.ceiling_store import find_calibration, stored_ceilings
from perfsuite.measure.environment import environment_engine
from perfsuite.units import NS_PER_S


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredDevice:
    """What tells the measurements of one device from those of others."""

    name: str
    fingerprint: Mapping[str, str]
    n_threads: int
    #: Of a board its engine's; None for this machine's, which is looked for when a calibration is.
    build_id: str | None
    #: The identity of a board at the end of a link; None for this machine.
    board: str | None

    def calibration(self) -> Calibration | None:
        """Return its calibration; None where it has none."""
        build_id = self.build_id or environment_engine().build_id
        return find_calibration(self.fingerprint, build_id, self.n_threads, user_cache(), board=self.board)

    def figures(self) -> tuple[float, float, float]:
        """Return TOPS, GB/s and microseconds a dispatch; raises `DeviceError` where no ceilings are kept."""
        ceilings = stored_ceilings(self.fingerprint, self.n_threads, user_cache(), board=self.board)
        if ceilings is None:
            which = "of this machine" if self.board is None else f"of this very board ({self.board[:8]})"
            sheet = "" if self.board is None else f" ('perfsuite devices show {self.name}' has the data sheet's)"
            raise DeviceError(
                f"--device={self.name}: no ceilings {which} with {self.n_threads} threads are stored; measure them "
                f"with 'perfsuite calibrate --device={self.name}' or 'pytest --device={self.name}', or give --tops "
                f"and --bandwidth{sheet}"
            )
        return (
            ceilings.fp32_flops_per_s / OPS_PER_TOPS,
            ceilings.bandwidths[-1].read_bytes_per_s / BYTES_PER_GB,
            (ceilings.dispatch_ns or 0) / NS_PER_S / S_PER_US,
        )


def add_device_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that say what the device gives."""
    group = parser.add_argument_group("device", "either --device, or --tops and --bandwidth")
    text = "device profile, with what was measured of it"
    group.add_argument("--device", metavar="NAME", help=text)
    group.add_argument("--tops", type=float, metavar="T", help="peak, 10^12 operations/s")
    group.add_argument("--bandwidth", type=float, metavar="B", help="memory bandwidth, GB/s")
    for part, peak in (("compute", "operations a second"), ("memory", "bandwidth")):
        text = f"share of the peak {peak} reached (default 1)"
        group.add_argument(f"--{part}-efficiency", type=float, default=1.0, metavar="E", help=text)
    text = "cost of a dispatch, µs (default 0; with --device: measured)"
    group.add_argument("--dispatch-us", type=float, metavar="X", help=text)
    group.add_argument("--power-w", type=float, metavar="P", help="power while computing, W: adds the energy")


def asked_device(options: argparse.Namespace) -> MeasuredDevice | None:
    """Return the device of the options; None where they have figures instead.

    Raises PerfsuiteError: there is no such device, both are given or none, or a board cannot be reached or taken.
    """
    figures = {"--tops": options.tops, "--bandwidth": options.bandwidth}
    given = [name for name, value in figures.items() if value is not None]
    if options.device is None:
        missing = [name for name in figures if name not in given]
        if missing:
            raise PerfsuiteError(f"{' and '.join(missing)}: missing; expected --tops and --bandwidth, or --device")
        return None
    if given:
        raise PerfsuiteError(f"--device={options.device} with {' and '.join(given)}: expected one or the other")
    if options.device not in profile_names():
        told = unknown_device(options.device, "--device=")
        raise DeviceError(f"{told}; --tops and --bandwidth describe one that has no profile")
    profile = find_profile(options.device)
    if profile.reach.way == "local":
        return MeasuredDevice(
            name=profile.name, fingerprint=host_fingerprint(), n_threads=default_threads(), build_id=None, board=None
        )
    return _board(profile, options)


def _board(profile: Profile, options: argparse.Namespace) -> MeasuredDevice:
    """Ask a board what it is, with its governor, which is a part of that; it need not be cool."""
    from perfsuite.cli.taken_device import taken_device  # only a board is taken
    from perfsuite.measure.board.protocol import board_name

    conditions = replace(profile.conditions, gpu_governor=None, start_below_celsius=None, least_battery_ratio=None)
    with taken_device(replace(profile, conditions=conditions), "forecast", options) as taken:
        facts = taken.board.facts()
        return MeasuredDevice(
            name=profile.name,
            fingerprint=facts.fingerprint,
            n_threads=facts.default_threads,
            build_id=facts.engine.build_id,
            board=board_name(taken.board).kept_by,
        )


def device_rates(options: argparse.Namespace, device: MeasuredDevice | None) -> DeviceRates:
    """Return what a device gives, or the figures of the options; an impossible one is a PerfsuiteError."""
    tops, bandwidth, dispatch_us = (options.tops, options.bandwidth, 0.0) if device is None else device.figures()
    return rates_of(
        tops=tops,
        bandwidth_gb_per_s=bandwidth,
        compute_efficiency=options.compute_efficiency,
        memory_efficiency=options.memory_efficiency,
        dispatch_us=dispatch_us if options.dispatch_us is None else options.dispatch_us,
        power_w=options.power_w,
    )

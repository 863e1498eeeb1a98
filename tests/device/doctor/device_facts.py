"""Facts of made-up devices, in good order unless a test says otherwise."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from perfsuite.device.doctor.gathering import Facts, Installed, SuiteState
from perfsuite.device.machine import Conditions
from perfsuite.device.profile import find_profile
from perfsuite.device.reach import Reach

from ..probe.device_trees import readings

INSTALLED = Installed(
    suite_version="0.1.0",
    plan_schema=2,
    engine_build_id="0123456789abcdef",
)

STATE = SuiteState(
    installed=INSTALLED,
    lock=None,
    restore_file=None,
    cache_dir="/home/pi/.cache/perfsuite",
    cache_free_bytes=20_000_000_000,
    opencl_device=None,
    opencl_problem="OpenCL: no platform has a device",
    ebpf_problem=None,
    backend_problem=None,
    is_busy=False,
)


def facts(*lines: str, conditions: Conditions | None = None, profile: Any = None, **changed: Any) -> Facts:
    """Return the facts of a device called ``bench`` that says these lines."""
    bench = replace(
        find_profile("host", folders=()),
        name="bench",
        conditions=conditions or Conditions(),
        **{"reach": Reach(way="ssh", address="pi@bench"), **(profile or {})},
    )
    usual: dict[str, Any] = {
        "profile": bench,
        "link_problem": None,
        "readings": readings(*lines),
        "suite": STATE,
        "suite_problem": None,
        "here": INSTALLED,
        "clock_difference_s": 0.0,
        "model_bytes": 800_000_000,
    }
    return Facts(**{**usual, **changed})

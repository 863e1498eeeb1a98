"""All checks of a device, in the order in which they are shown."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from perfsuite.device.doctor import clock_checks, hardware_checks, rest_checks, suite_checks
from perfsuite.device.doctor.gathering import Facts, Finding, SuiteState

#: Returns None where there is nothing to say.
Check = Callable[[Facts], Finding | None]


def _of_suite(check: Callable[[Facts, SuiteState], Finding | None]) -> Check:
    """Return a check that says nothing where the suite there does not."""
    return lambda facts: None if facts.suite is None else check(facts, facts.suite)


#: What needs the device is left out where it cannot be reached.
_CHECKS: tuple[tuple[str, Check], ...] = (
    ("suite", suite_checks.suite),
    ("llama.cpp", _of_suite(suite_checks.engine)),
    ("lock", _of_suite(suite_checks.lock)),
    ("leftovers", _of_suite(suite_checks.leftovers)),
    ("C library", hardware_checks.c_library),
    ("disk", _of_suite(suite_checks.disk)),
    ("memory", rest_checks.memory),
    ("swap", rest_checks.swap),
    ("processors", hardware_checks.cores),
    ("governor", clock_checks.governor),
    ("GPU's governor", clock_checks.gpu_governor),
    ("GPU's clock", hardware_checks.gpu_clock),
    ("clocks", clock_checks.bounds),
    ("boost", clock_checks.boost),
    ("thermal zones", hardware_checks.thermal_zones),
    ("temperature", rest_checks.heat),
    ("throttling", rest_checks.throttling),
    ("battery", rest_checks.charge),
    ("load", rest_checks.load),
    ("steal", rest_checks.steal),
    ("clock", suite_checks.clock),
    ("OpenCL's loader", hardware_checks.opencl_loader),
    ("OpenCL's drivers", hardware_checks.opencl_drivers),
    ("OpenCL", _of_suite(suite_checks.opencl)),
    ("OpenCL backend", _of_suite(hardware_checks.opencl_backend)),
    ("eBPF", _of_suite(suite_checks.ebpf)),
)


def examine(facts: Facts) -> tuple[Finding, ...]:
    """Return what was found; of a device that cannot be reached, that alone."""
    reach = replace(suite_checks.reach(facts), what="reach")
    if facts.link_problem is not None:
        return (reach,)
    found = ((what, check(facts)) for what, check in _CHECKS)
    return (reach, *(replace(each, what=what) for what, each in found if each is not None))

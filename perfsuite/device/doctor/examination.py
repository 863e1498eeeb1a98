"""All checks of a device, in the order in which they are told."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from perfsuite.device.doctor import clock_checks, rest_checks, suite_checks
from perfsuite.device.doctor.facts import Facts
from perfsuite.device.doctor.finding import Finding

Check = Callable[[Facts], Iterator[Finding]]

#: What needs the device is left out where it cannot be reached.
_CHECKS: tuple[Check, ...] = (
    suite_checks.check_suite,
    suite_checks.check_lock,
    suite_checks.check_disk,
    rest_checks.check_memory,
    clock_checks.check_governor,
    clock_checks.check_gpu_governor,
    clock_checks.check_bounds,
    rest_checks.check_heat,
    rest_checks.check_throttling,
    rest_checks.check_battery,
    rest_checks.check_load,
    suite_checks.check_clock,
    suite_checks.check_opencl,
    suite_checks.check_ebpf,
)


def examine(facts: Facts) -> tuple[Finding, ...]:
    """Return what was found; of a device that cannot be reached, that alone."""
    reach = tuple(suite_checks.check_reach(facts))
    if facts.link_problem is not None:
        return reach
    return reach + tuple(finding for check in _CHECKS for finding in check(facts))

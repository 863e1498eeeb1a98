"""All that a doctor looks at, gathered before anything is judged."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from functools import partial
from typing import Any

from perfsuite.device.lock.state import LockState
from perfsuite.device.probe.readings import Readings
from perfsuite.device.profile import Profile
from perfsuite.device.setup.installed import Installed
from perfsuite.errors import DeviceError
from perfsuite.records.codec import rebuilt


class Grade(str, Enum):
    """How bad a finding is."""

    OK = "ok"
    #: Measurements are worth less than they could be.
    WARN = "warn"
    #: Nothing can be measured, or what is measured means nothing.
    FAIL = "fail"


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of a doctor."""

    #: What was looked at: the name that `perfsuite.device.doctor.examination` has for the check.
    what: str
    grade: Grade
    #: What was seen.
    seen: str
    #: The command, or what to do; "" where it is in order.
    mend: str = ""


#: For checks, which have no name themselves.
ok, warn, fail = (partial(Finding, "", grade) for grade in Grade)


NO_READINGS = Readings(lines={})


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteState:
    """What the suite on a device says of itself and of what it keeps there."""

    installed: Installed
    #: Sixteen hex digits over what setup installed; None for one that setup did not install.
    digest: str | None
    lock: LockState | None
    #: The file by which a run restores what it has set, where there is one.
    restore_file: str | None
    #: Where models and compiled code are kept, and what is free there.
    cache_dir: str
    cache_free_bytes: int
    #: Whether somebody may be measuring, so that nothing was started for the last three.
    is_busy: bool
    #: The OpenCL device that would be measured; None with the reason in `opencl_problem`.
    opencl_device: str | None
    opencl_problem: str | None
    #: The one thing that keeps the eBPF recorder from working; None where nothing does.
    ebpf_problem: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """A device as it is now, and the suite here."""

    profile: Profile
    here: Installed
    here_digest: str | None
    #: Weights of the default model; None where it is not known.
    model_bytes: int | None
    #: Why it cannot be reached; then nothing below is known.
    link_problem: str | None = None
    #: The device's clock less that of this machine; whole seconds, for shells tell no less.
    clock_difference_s: float | None = None
    readings: Readings = NO_READINGS
    #: None with the reason in `suite_problem`.
    suite: SuiteState | None = None
    suite_problem: str | None = None


def read_suite_state(plain: Mapping[str, Any]) -> SuiteState:
    """Read what ``devices_installed --state`` printed; that of another version is a `DeviceError`."""
    try:
        return rebuilt(plain, SuiteState)
    except ValueError:
        raise DeviceError("it is of another version than the suite here") from None

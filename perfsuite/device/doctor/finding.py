"""What a doctor finds: one thing, whether it is in order, and how it is mended."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from functools import partial


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

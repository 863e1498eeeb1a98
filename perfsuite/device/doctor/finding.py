"""What a doctor finds: one thing, whether it is in order, and how it is mended."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Grade(str, Enum):
    """How bad a finding is."""

    OK = "ok"
    #: Measurements are worth less than they could be.
    WARN = "warn"
    #: Nothing can be measured, or what is measured means nothing.
    FAIL = "fail"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One line of a doctor."""

    what: str
    grade: Grade
    #: What was seen.
    seen: str
    #: The command, or what to do; "" where it is in order.
    mend: str = ""


def ok(what: str, seen: str) -> Finding:
    """Return a finding that is in order."""
    return Finding(what=what, grade=Grade.OK, seen=seen)


def warn(what: str, seen: str, mend: str) -> Finding:
    """Return a finding that makes measurements worse."""
    return Finding(what=what, grade=Grade.WARN, seen=seen, mend=mend)


def fail(what: str, seen: str, mend: str) -> Finding:
    """Return a finding that makes measurements impossible."""
    return Finding(what=what, grade=Grade.FAIL, seen=seen, mend=mend)

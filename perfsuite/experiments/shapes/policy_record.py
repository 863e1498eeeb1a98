"""A policy by shape: which tiling, or which backend, computes an operation fastest, as a table that a runtime can load.

A policy is one JSON object (``"schema": 1``) with ``tables``. Each table answers one question for one operation, one
stored type and fixed sizes; one dimension decides. Its ``rows`` are ranges of that dimension, ascending and without
gaps or overlaps, from the first to the last size that was measured. All that a runtime does, n being the size of
``dimension``::

    choice = table.default;
    for (i = 0; i < table.n_rows; i++)
        if (table.rows[i].least <= n && n <= table.rows[i].most)
            choice = table.rows[i].choice;

Beyond the measured sizes no row holds, and the default is what is left: nothing extrapolates. The default is the choice
that is fastest over all measured shapes, if it has to be one for all; the worst is the slowest such choice. A gain is
time of the default (or of the worst) over time of the choice, above 1 for a choice that is faster.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any

from msgspec import Meta

from perfsuite.errors import PolicyError
from perfsuite.records.codec import Name, Positive, read_json, to_plain
from perfsuite.records.whole_file import write_json
from perfsuite.workload.shapes.shape_case import Subject

#: Raised whenever a key of the JSON changes its meaning.
SCHEMA = 1

#: The largest size: that of a C int.
_MOST_SIZE = 2**31 - 1
#: Sizes are what a C int holds.
PolicySize = Annotated[int, Meta(ge=1, le=_MOST_SIZE, description=f"a whole number of 1 to {_MOST_SIZE}")]

#: How the subjects without a tile are called where people read.
_SHORT_NAMES = {Subject.GGML_CPU: "cpu", Subject.GGML_OPENCL: "opencl"}


class Decision(str, Enum):
    """What a table decides."""

    #: The tile and the vector width of the suite's own kernels.
    TILING = "tiling"
    #: ggml's backend.
    BACKEND = "backend"


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Choice:
    """Who computes, and cut how."""

    subject: Subject
    #: None where the subject cuts as it sees fit.
    tile: PolicySize | None = None
    vector: PolicySize | None = None

    def __post_init__(self) -> None:
        is_tiled = self.subject is Subject.TILED
        if any((each is None) is is_tiled for each in (self.tile, self.vector)):
            wanted = "a tile and a vector" if is_tiled else "no tile and no vector"
            raise PolicyError(f"{self.subject.value}: expected {wanted}")

    def __str__(self) -> str:
        """Such as ``tile64-vector8``, ``cpu`` or ``opencl``."""
        return _SHORT_NAMES.get(self.subject) or f"tile{self.tile}-vector{self.vector}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Gain:
    """Time of another choice over time of this one; above 1 this one is faster."""

    #: The geometric mean over shapes.
    ratio: Positive
    #: Ends of its two-sided 95 % interval.
    lower_ratio: Positive
    upper_ratio: Positive

    def __post_init__(self) -> None:
        if not 0.0 < self.lower_ratio <= self.ratio <= self.upper_ratio < math.inf:
            raise PolicyError(
                f"a gain of {self.ratio:g} between {self.lower_ratio:g} and {self.upper_ratio:g}, expected finite "
                "ratios above 0 in the order lower, ratio, upper"
            )


#: What a choice gains over itself.
NO_GAIN = Gain(ratio=1.0, lower_ratio=1.0, upper_ratio=1.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyRow:
    """A range of the deciding dimension, both ends within it, and what is chosen there."""

    least: PolicySize
    most: PolicySize
    #: The first and the last measured size of the range; what lies beyond, towards a neighbour, is interpolated.
    measured_least: PolicySize
    measured_most: PolicySize
    choice: Choice
    gain_over_default: Gain
    gain_over_worst: Gain

    def __post_init__(self) -> None:
        if not 1 <= self.least <= self.measured_least <= self.measured_most <= self.most:
            raise PolicyError(
                f"a row from {self.least} to {self.most}, measured from {self.measured_least} to "
                f"{self.measured_most}; expected least <= measured_least <= measured_most <= most"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut:
    """A choice that could not be measured at all of the shapes, or computed something else."""

    choice: Choice
    reason: Name


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyTable:
    """One question for one operation, type and fixed sizes, answered by the size of one dimension."""

    decides: Decision
    operation: Name
    type: Name
    #: The dimension that decides, and the sizes of all others by name.
    dimension: Name
    fixed: Mapping[str, PolicySize]
    #: Ascending.
    measured_sizes: tuple[PolicySize, ...]
    #: Fresh processes that the promised gains rest on; as many others made the choice.
    n_processes: PolicySize
    #: The best and the worst single choice for all measured shapes.
    default: Choice
    worst: Choice
    #: Over all measured shapes.
    gain_over_default: Gain
    gain_over_worst: Gain
    rows: tuple[PolicyRow, ...]
    left_out: tuple[LeftOut, ...] = ()

    def __post_init__(self) -> None:
        sizes = self.measured_sizes
        if not sizes or sizes[0] < 1 or any(right <= left for left, right in pairwise(sizes)):
            raise PolicyError("measured_sizes: expected one or more sizes of 1 or more, ascending")
        if not self.rows or (self.rows[0].least, self.rows[-1].most) != (sizes[0], sizes[-1]):
            raise PolicyError(f"rows: expected the first to begin at {sizes[0]} and the last to end at {sizes[-1]}")
        for number, (left, right) in enumerate(pairwise(self.rows), start=1):
            if right.least != left.most + 1:
                raise PolicyError(f"rows[{number}].least: is {right.least}, expected {left.most + 1}")
        for number, row in enumerate(self.rows):
            if not {row.measured_least, row.measured_most} <= set(sizes):
                raise PolicyError(f"rows[{number}]: measured_least and measured_most are none of the measured sizes")

    @property
    def title(self) -> str:
        fixed = "".join(f", {name} {size}" for name, size in self.fixed.items())
        return f"{self.decides.value} of {self.operation}, {self.type}{fixed}"


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredSubject:
    """On what a subject was measured."""

    subject: Subject
    device: Name
    #: What must be equal where the policy is checked or used: device, driver, engine.
    fingerprint: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class ShapePolicy:
    """Tables of one device."""

    recorded_at: Name
    suite_version: Name
    #: The device profile, such as ``host``, and the threads of ggml's processor backend.
    device: Name
    n_threads: PolicySize
    subjects: tuple[MeasuredSubject, ...]
    tables: tuple[PolicyTable, ...]

    def __post_init__(self) -> None:
        known = {each.subject for each in self.subjects}
        for number, table in enumerate(self.tables):
            for choice in (table.default, table.worst, *(row.choice for row in table.rows)):
                if choice.subject not in known:
                    raise PolicyError(
                        f"tables[{number}]: chooses {choice.subject.value}, which is none of the subjects"
                    )


def write_policy(policy: ShapePolicy, path: Path) -> None:
    """Write a policy whole; PolicyError where the file cannot be written."""
    write_json(path, policy_plain(policy), PolicyError)


def read_policy(path: Path) -> ShapePolicy:
    """Read a policy; PolicyError names the file, the field, what it is and what is expected."""
    return read_json(path, ShapePolicy, PolicyError, "expected a file of 'perfsuite policy'", schema=SCHEMA)


def policy_plain(policy: ShapePolicy) -> dict[str, Any]:
    """Return a policy as dicts, lists, numbers and strings; a choice that is not tiled has no tile and no vector."""
    return {"schema": SCHEMA, **_without_nulls(to_plain(policy))}


def _without_nulls(plain: Any) -> Any:
    if isinstance(plain, dict):
        return {name: _without_nulls(value) for name, value in plain.items() if value is not None}
    return [_without_nulls(each) for each in plain] if isinstance(plain, list | tuple) else plain

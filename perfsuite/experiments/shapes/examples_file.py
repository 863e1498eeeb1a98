"""Kept shapes: where an operation was found to break down, as a reviewed file of the device's baselines.

``<directory>/<device>/shapes/<subject>-<operation>.json`` holds entries by fingerprint of the bench, each with its
examples; a reviewer sets an example's ``accepted_ratio``, ``note``, or takes the example out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path

from perfsuite.errors import BaselineError
from perfsuite.records.codec import Amount, read_json, to_plain
from perfsuite.records.plain_names import plain_name
from perfsuite.records.whole_file import write_json

#: Raised whenever a field changes its meaning.
SCHEMA = 1

_RESTORE = "restore it from version control, or move it away"


@dataclass(frozen=True, slots=True, kw_only=True)
class ShapeExample:
    """One shape at which a property was found not to hold."""

    #: Such as ``shape/tiled/bmm/b32-m1-n33-k128/f16/tile64-vector8``.
    case_id: str
    property: str
    #: What the property bounds, as it was found; None where there is no ratio, as of a crash.
    ratio: Amount | None
    lower_ratio: Amount | None
    upper_ratio: Amount | None
    #: When it was found, ISO 8601.
    recorded_at: str
    note: str = ""
    #: How bad a reviewer lets the shape be; None where it has to be mended.
    accepted_ratio: Amount | None = None
    #: Of the bench that it was found on, sorted.
    fingerprint: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Entry:
    """Examples of one fingerprint as the file has them; each is there without it."""

    fingerprint: Mapping[str, str]
    examples: tuple[ShapeExample, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _File:
    entries: tuple[_Entry, ...]


def examples_path(directory: Path, device: str, case_id: str) -> Path:
    """Return the file in which the examples of a case's subject and operation lie."""
    parts = case_id.split("/")
    if len(parts) < 3:
        raise BaselineError(f"{case_id}: not a shape's case id; expected shape/<subject>/<operation>/...")
    folder = directory / plain_name(device, f"{directory}: the device", BaselineError) / "shapes"
    name = plain_name(f"{parts[1]}-{parts[2]}", f"{folder}: the subject and operation", BaselineError)
    return folder / f"{name}.json"


def read_examples(path: Path) -> tuple[ShapeExample, ...]:
    """Read one file, none of one that does not exist; `BaselineError` names what is missing, unknown or wrong in it."""
    read = read_json(path, _File, BaselineError, _RESTORE, schema=SCHEMA, is_closed=True, absent=_File(entries=()))
    return tuple(
        replace(example, fingerprint=tuple(sorted(entry.fingerprint.items())))
        for entry in read.entries
        for example in entry.examples
    )


def write_examples(path: Path, examples: Iterable[ShapeExample]) -> None:
    """Write a file whole or not at all, entries by fingerprint and examples by property and size."""
    ordered = sorted(examples, key=lambda each: (each.fingerprint, each.property, _natural(each.case_id)))
    entries = []
    for fingerprint, group in groupby(ordered, key=lambda each: each.fingerprint):
        told = [to_plain(each) for each in group]
        for example in told:
            del example["fingerprint"]
        entries.append({"fingerprint": dict(fingerprint), "examples": told})
    write_json(path, {"schema": SCHEMA, "entries": entries}, BaselineError)


def _natural(case_id: str) -> list[tuple[int, str]]:
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", case_id)]

"""The kept shapes of a device: read with what they name checked, and the smallest ones added.

Kept shapes: where an operation was found to break down, as a reviewed file of the device's baselines.

``<directory>/<device>/shapes/<subject>-<operation>.json`` holds entries by fingerprint of the bench, each with its
examples; a reviewer sets an example's ``accepted_ratio``, ``note``, or takes the example out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from itertools import groupby
from pathlib import Path

from perfsuite.errors import BaselineError, ShapeError
from perfsuite.experiments.shapes.shape_property import ShapeProperty, ShapeVerdict
from perfsuite.records.codec import Amount, read_json, to_plain
from perfsuite.records.whole_file import plain_name, write_json
from perfsuite.workload.shapes.shape_case import ShapeCase

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


#: What a fingerprint tells of what is measured, rather than of the bench: whoever mends a kernel changes it.
_UNDER_TEST = ("kernels",)


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptShape:
    """An example with what it names."""

    example: ShapeExample
    case: ShapeCase
    property: ShapeProperty
    path: Path


def bench_of(fingerprint: Mapping[str, str] | Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return what a fingerprint tells of device and driver: a kept shape is compared with kernels that have changed."""
    return {name: value for name, value in dict(fingerprint).items() if name not in _UNDER_TEST}


def read_kept(directory: Path, device: str) -> tuple[KeptShape, ...]:
    """Return all kept shapes of a device; `BaselineError` names the file and field of what is none."""
    paths = sorted((directory / device / "shapes").glob("*.json"))
    return tuple(_kept(path, example) for path in paths for example in read_examples(path))


def keep(directory: Path, device: str, example: ShapeExample) -> bool:
    """Add an example to the device's, unless one that is kept covers it; return whether it was added.

    What is kept stays: it is for a reviewer to take out the larger shapes that a smaller one makes superfluous.
    """
    path = examples_path(directory, device, example.case_id)
    kept, new = read_examples(path), _kept(path, example)
    if any(covers(_kept(path, each), new) for each in kept):
        return False
    write_examples(path, (*kept, example))
    return True


def covers(kept: KeptShape, new: KeptShape) -> bool:
    """Say whether a kept shape tells all that another would.

    It does where the property, the bench and all but the sizes are the same, and none of its sizes is larger. One that
    was accepted covers only what is no worse than that.
    """
    is_smaller = _is_alike(kept, new.case, new.property, new.example.fingerprint) and all(
        size <= larger for size, larger in zip(kept.case.shape.sizes, new.case.shape.sizes, strict=True)
    )
    accepted_ratio, ratio = kept.example.accepted_ratio, new.example.ratio
    return is_smaller and (accepted_ratio is None or (ratio is not None and ratio <= accepted_ratio))


def accepted_ratio_of(
    kept: Iterable[KeptShape], case: ShapeCase, property: ShapeProperty, fingerprint: Mapping[str, str]
) -> float | None:
    """Return the largest ratio that a reviewer accepted of such a case at any sizes, on the bench; None without any."""
    accepted = (each.example.accepted_ratio for each in kept if _is_alike(each, case, property, fingerprint))
    return max((ratio for ratio in accepted if ratio is not None), default=None)


def _is_alike(
    kept: KeptShape,
    case: ShapeCase,
    property: ShapeProperty,
    fingerprint: Mapping[str, str] | Iterable[tuple[str, str]],
) -> bool:
    kinds = ((each.subject, each.operation, each.shape.type, each.tiling) for each in (kept.case, case))
    is_same = next(kinds) == next(kinds) and kept.property is property
    return is_same and bench_of(kept.example.fingerprint) == bench_of(fingerprint)


def example_of(verdict: ShapeVerdict, fingerprint: dict[str, str]) -> ShapeExample:
    """Return what is kept of a verdict, now."""
    return ShapeExample(
        case_id=verdict.case_id,
        property=verdict.property.value,
        ratio=verdict.ratio,
        lower_ratio=verdict.lower_ratio,
        upper_ratio=verdict.upper_ratio,
        recorded_at=datetime.now(timezone.utc).isoformat(timespec="seconds"),
        fingerprint=tuple(sorted(bench_of(fingerprint).items())),
    )


def _kept(path: Path, example: ShapeExample) -> KeptShape:
    names = [each.value for each in ShapeProperty]
    if example.property not in names:
        raise BaselineError(f"{path}: 'property' is {example.property!r}, expected one of {', '.join(names)}")
    try:
        case = ShapeCase.from_id(example.case_id)
    except ShapeError as error:
        raise BaselineError(f"{path}: 'case_id': {error}") from error
    return KeptShape(example=example, case=case, property=ShapeProperty(example.property), path=path)

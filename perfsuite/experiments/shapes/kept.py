"""Kept shapes: where an operation was found to break down, as a reviewed file of the device's baselines.

``<directory>/<device>/shapes/<subject>-<operation>.json`` holds entries by fingerprint of the bench, each with its
examples; a reviewer sets an example's ``accepted_ratio``, ``note``, or takes the example out. The smallest are added,
and the verdict on one is whether it still fails, fails within what was accepted, or no longer does.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

from perfsuite.errors import BaselineError, ShapeError
from perfsuite.experiments.shapes.shape_property import WRONG, ShapeProperty, ShapeVerdict
from perfsuite.records.codec import Amount, read_json, to_plain
from perfsuite.records.fingerprint import differences
from perfsuite.records.outcome import Outcome
from perfsuite.records.whole_file import plain_name, write_json
from perfsuite.units import format_change
from perfsuite.workload.shapes.shape_case import ShapeCase

if TYPE_CHECKING:
    from perfsuite.experiments.shapes.judge import ShapeJudge

#: Raised whenever a field changes its meaning.
SCHEMA = 1

#: What a fingerprint tells of what is measured, rather than of the bench: whoever mends a kernel changes it.
_UNDER_TEST = ("kernels",)

#: The properties that are judged against the margin, and those of which a reviewer may accept a ratio.
_BY_MARGIN = (ShapeProperty.PADDING, ShapeProperty.GROWTH)
_ACCEPTABLE = (*_BY_MARGIN, ShapeProperty.CALIBRATED)

_Fingerprint = Mapping[str, str] | Iterable[tuple[str, str]]


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


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptShape:
    """An example with what it names."""

    example: ShapeExample
    case: ShapeCase
    property: ShapeProperty
    path: Path


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
    todo, absent = "restore it from version control, or move it away", _File(entries=())
    read = read_json(path, _File, BaselineError, todo, schema=SCHEMA, is_closed=True, absent=absent)
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
        plain = [to_plain(each) for each in group]
        for example in plain:
            del example["fingerprint"]
        entries.append({"fingerprint": dict(fingerprint), "examples": plain})
    write_json(path, {"schema": SCHEMA, "entries": entries}, BaselineError)


def read_kept(directory: Path, device: str) -> tuple[KeptShape, ...]:
    """Return all kept shapes of a device; `BaselineError` names the file and field of what is none."""
    paths = sorted((directory / device / "shapes").glob("*.json"))
    return tuple(_kept(path, example) for path in paths for example in read_examples(path))


def keep(directory: Path, device: str, example: ShapeExample) -> bool:
    """Add an example to the device's, unless one that is kept covers it; return whether it was added.

    It is covered where the property, the bench and all but the sizes are the same, and none of the kept sizes is
    larger; one that was accepted covers only what is no worse than that. What is kept stays: it is for a reviewer to
    take out the larger shapes that a smaller one makes superfluous.
    """
    path = examples_path(directory, device, example.case_id)
    examples, new = read_examples(path), _kept(path, example)
    if any(_covers(_kept(path, each), new) for each in examples):
        return False
    write_examples(path, (*examples, example))
    return True


def accepted_ratio_of(
    kept: Iterable[KeptShape], case: ShapeCase, property: ShapeProperty, fingerprint: _Fingerprint
) -> float | None:
    """Return the largest ratio that a reviewer accepted of such a case at any sizes, on the bench; None without any."""
    accepted = (each.example.accepted_ratio for each in kept if _is_alike(each, case, property, fingerprint))
    return max((ratio for ratio in accepted if ratio is not None), default=None)


def bench_of(fingerprint: _Fingerprint) -> dict[str, str]:
    """Return what a fingerprint tells of device and driver: a kept shape is compared with kernels that have changed."""
    return {name: value for name, value in dict(fingerprint).items() if name not in _UNDER_TEST}


def example_of(verdict: ShapeVerdict, fingerprint: _Fingerprint) -> ShapeExample:
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


def judge_kept(judge: ShapeJudge, kept: KeptShape) -> ShapeVerdict:
    """Judge a kept shape by its property, and by what a reviewer accepted.

    A shape that fails stays what it is where nothing was accepted; it is PASS within ``accepted_ratio`` and the margin,
    by its lower bound. What was accepted on another bench is INCOMPARABLE here. A wrong output and a crash are never
    accepted. A shape that passes is IMPROVED where that is sure, else INCONCLUSIVE; where it was found on another bench
    it may still fail there, and is PASS.
    """
    verdict = judge.judge(kept.property, kept.case)
    if verdict.outcome is Outcome.INVALID:
        return verdict
    elsewhere = "; ".join(differences(bench_of(kept.example.fingerprint), bench_of(judge.fingerprint)))
    outcome, what = (_failing if verdict.outcome.fails else _passing)(verdict, kept, judge.margin_ratio, elsewhere)
    return replace(verdict, outcome=outcome, reason=f"{what}; {verdict.reason}")


def is_accepted(verdict: ShapeVerdict, accepted_ratio: float, margin_ratio: float) -> bool:
    """Say whether what fails is, by its lower bound, no worse than what was accepted and the margin.

    A wrong output, a crash, and what is faster than the ceilings allow are never accepted.
    """
    if verdict.property not in _ACCEPTABLE or verdict.outcome is WRONG or verdict.lower_ratio is None:
        return False
    return verdict.lower_ratio <= accepted_ratio * (1.0 + margin_ratio)


def _failing(verdict: ShapeVerdict, kept: KeptShape, margin_ratio: float, elsewhere: str) -> tuple[Outcome, str]:
    accepted_ratio = kept.example.accepted_ratio
    if accepted_ratio is None or verdict.lower_ratio is None or kept.property not in _ACCEPTABLE:
        return verdict.outcome, "still fails"
    accepted = f"accepted were {format_change(accepted_ratio)}"
    if not is_accepted(verdict, accepted_ratio, margin_ratio):
        return verdict.outcome, f"worse than accepted: {accepted}"
    if elsewhere:
        return Outcome.INCOMPARABLE, f"{accepted} with {elsewhere}"
    return Outcome.PASS, f"within what was accepted: {accepted}"


def _passing(verdict: ShapeVerdict, kept: KeptShape, margin_ratio: float, elsewhere: str) -> tuple[Outcome, str]:
    if elsewhere:
        return Outcome.PASS, f"does not fail here; it was found with {elsewhere}"
    is_open = verdict.upper_ratio is None or verdict.upper_ratio >= 1.0 + margin_ratio
    if kept.property in _BY_MARGIN and is_open:
        return Outcome.INCONCLUSIVE, "not seen to fail, and not ruled out"
    return Outcome.IMPROVED, f"no longer fails; remove it from {kept.path}"


def _covers(kept: KeptShape, new: KeptShape) -> bool:
    is_smaller = _is_alike(kept, new.case, new.property, new.example.fingerprint) and all(
        size <= larger for size, larger in zip(kept.case.shape.sizes, new.case.shape.sizes, strict=True)
    )
    accepted_ratio, ratio = kept.example.accepted_ratio, new.example.ratio
    return is_smaller and (accepted_ratio is None or (ratio is not None and ratio <= accepted_ratio))


def _is_alike(kept: KeptShape, case: ShapeCase, property: ShapeProperty, fingerprint: _Fingerprint) -> bool:
    kinds = ((each.subject, each.operation, each.shape.type, each.tiling) for each in (kept.case, case))
    is_same = next(kinds) == next(kinds) and kept.property is property
    return is_same and bench_of(kept.example.fingerprint) == bench_of(fingerprint)


def _kept(path: Path, example: ShapeExample) -> KeptShape:
    names = [each.value for each in ShapeProperty]
    if example.property not in names:
        raise BaselineError(f"{path}: 'property' is {example.property!r}, expected one of {', '.join(names)}")
    try:
        case = ShapeCase.from_id(example.case_id)
    except ShapeError as error:
        raise BaselineError(f"{path}: 'case_id': {error}") from error
    return KeptShape(example=example, case=case, property=ShapeProperty(example.property), path=path)


def _natural(case_id: str) -> list[tuple[int, str]]:
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", case_id)]

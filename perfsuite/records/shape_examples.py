"""Kept shapes: where an operation was found to break down, as a reviewed file of the device's baselines.

``<directory>/<device>/shapes/<subject>-<operation>.json`` holds entries by fingerprint of the bench, each with its
examples; a reviewer sets an example's ``accepted_ratio``, ``note``, or takes the example out.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields
from itertools import groupby
from pathlib import Path
from typing import Any

from perfsuite.errors import BaselineError
from perfsuite.records.json_file import write_json
from perfsuite.records.plain_names import plain_name

#: Raised whenever a field changes its meaning.
SCHEMA = 1

_RATIOS = ("ratio", "lower_ratio", "upper_ratio", "accepted_ratio")
_KINDS: dict[type, str] = {list: "a list", dict: "an object", str: "a text"}
_RESTORE = "restore it from version control, or move it away"


@dataclass(frozen=True, slots=True, kw_only=True)
class ShapeExample:
    """One shape at which a property was found not to hold."""

    #: Such as ``shape/tiled/bmm/b32-m1-n33-k128/f16/tile64-vector8``.
    case_id: str
    #: The property, by its name in verdicts.
    property: str
    #: What the property bounds, as it was found; None where there is no ratio, as of a crash.
    ratio: float | None
    lower_ratio: float | None
    upper_ratio: float | None
    #: When it was found, ISO 8601.
    recorded_at: str
    #: What people should know of it.
    note: str = ""
    #: How bad a reviewer lets the shape be; None where it has to be mended.
    accepted_ratio: float | None = None
    #: Of the bench that it was found on, sorted.
    fingerprint: tuple[tuple[str, str], ...] = ()


def examples_path(directory: Path, device: str, case_id: str) -> Path:
    """Return the file in which the examples of a case's subject and operation lie."""
    parts = case_id.split("/")
    if len(parts) < 3:
        raise BaselineError(f"{case_id}: not a shape's case id; expected shape/<subject>/<operation>/...")
    folder = directory / plain_name(device, f"{directory}: the device", BaselineError) / "shapes"
    name = plain_name(f"{parts[1]}-{parts[2]}", f"{folder}: the subject and operation", BaselineError)
    return folder / f"{name}.json"


def read_examples(path: Path) -> tuple[ShapeExample, ...]:
    """Read one file; one that does not exist has no examples.

    Raises
    ------
    BaselineError
        The file is not JSON, has another schema, or a field is missing, unknown or of another kind; it is named.
    """
    try:
        plain = json.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        return ()
    except OSError as error:
        raise BaselineError(f"{path}: cannot be read ({error.strerror})") from error
    except (ValueError, RecursionError) as error:
        raise BaselineError(f"{path}: is not JSON ({error}); {_RESTORE}") from error
    entries = _member(f"{path}", plain, "entries", list)
    if plain.get("schema") != SCHEMA:
        raise BaselineError(f"{path}: schema is {plain.get('schema')!r}, this suite reads {SCHEMA}; {_RESTORE}")
    return tuple(
        example for place, entry in enumerate(entries) for example in _entry(f"{path}: entries[{place}]", entry)
    )


def read_device_examples(directory: Path, device: str) -> dict[Path, tuple[ShapeExample, ...]]:
    """Read all examples of a device, by the file that they lie in."""
    return {path: read_examples(path) for path in sorted((directory / device / "shapes").glob("*.json"))}


def write_examples(path: Path, examples: Iterable[ShapeExample]) -> None:
    """Write a file whole or not at all, entries by fingerprint and examples by property and size."""
    ordered = sorted(examples, key=lambda each: (each.fingerprint, each.property, _natural(each.case_id)))
    entries = [
        {"fingerprint": dict(fingerprint), "examples": [_plain(each) for each in group]}
        for fingerprint, group in groupby(ordered, key=lambda each: each.fingerprint)
    ]
    write_json(path, {"schema": SCHEMA, "entries": entries}, BaselineError)


def _natural(case_id: str) -> list[tuple[int, str]]:
    """Return what orders case ids by their sizes as numbers."""
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", case_id)]


def _plain(example: ShapeExample) -> dict[str, Any]:
    return {name: value for name, value in asdict(example).items() if name != "fingerprint"}


def _entry(where: str, plain: object) -> Iterable[ShapeExample]:
    named = _member(where, plain, "fingerprint", dict)
    fingerprint = tuple(sorted((str(name), str(value)) for name, value in named.items()))
    for place, each in enumerate(_member(where, plain, "examples", list)):
        yield _example(f"{where}.examples[{place}]", each, fingerprint)


def _example(where: str, plain: object, fingerprint: tuple[tuple[str, str], ...]) -> ShapeExample:
    names = {field.name for field in fields(ShapeExample)} - {"fingerprint"}
    if not isinstance(plain, dict) or set(plain) != names:
        seen = sorted(map(str, plain)) if isinstance(plain, dict) else type(plain).__name__
        raise BaselineError(f"{where}: fields are {seen}, expected {sorted(names)}; {_RESTORE}")
    for name in names - set(_RATIOS):
        _member(where, plain, name, str)
    ratios = {name: _ratio(where, name, plain[name]) for name in _RATIOS}
    return ShapeExample(**{**plain, **ratios, "fingerprint": fingerprint})


def _ratio(where: str, name: str, value: object) -> float | None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < math.inf
    if value is not None and not is_number:
        raise BaselineError(f"{where}: {name!r} is {value!r}, expected a number of 0 or more, or null; {_RESTORE}")
    return float(value) if isinstance(value, int | float) else None


def _member(where: str, plain: object, name: str, kind: type[list[Any] | dict[str, Any] | str]) -> Any:
    value = plain.get(name) if isinstance(plain, Mapping) else None
    if not isinstance(value, kind):
        seen = repr(value) if isinstance(plain, Mapping) else f"no object but {type(plain).__name__}"
        raise BaselineError(f"{where}: {name!r} is {seen}, expected {_KINDS[kind]}; {_RESTORE}")
    return value

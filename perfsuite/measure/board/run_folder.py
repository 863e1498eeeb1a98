"""The folder of one run on its board: named by plan and environment before it is there, and brought back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields, replace
from pathlib import Path, PurePosixPath
from typing import Any, TypeVar

from perfsuite.errors import LinkError, MeasurementError
from perfsuite.measure.plan import EbpfPlan, Plan

#: What stands for the folder in the texts of a plan and of an environment; no board has such a folder.
RUN_FOLDER = Path("/{folder of this run}")

#: Most that a run's files may have together, bytes: a log of more would not be read either.
FILES_LIMIT_BYTES = 4 << 30

_Placed = TypeVar("_Placed")


def placed_in(folder: Path, value: _Placed) -> _Placed:
    """Return a plan, an environment or a text with the folder's path where `RUN_FOLDER` is in it."""
    placed: Any = value
    if isinstance(value, str):
        placed = value.replace(str(RUN_FOLDER), str(folder))
    elif isinstance(value, Mapping):
        placed = {name: placed_in(folder, each) for name, each in value.items()}
    elif isinstance(value, tuple) and all(isinstance(each, Mapping) for each in value):
        placed = tuple(placed_in(folder, each) for each in value)
    elif isinstance(value, Plan | EbpfPlan):
        named = {each.name: getattr(value, each.name) for each in fields(value)}
        placed = replace(value, **{name: placed_in(folder, each) for name, each in named.items()})
    return placed  # type: ignore[no-any-return]


def within_limit(found: Iterable[tuple[str, int]]) -> tuple[tuple[str, int], ...]:
    """Return names and sizes of a run's files; `MeasurementError` where they are more than `FILES_LIMIT_BYTES`."""
    files = tuple(found)
    if (n_bytes := sum(size for _, size in files)) > FILES_LIMIT_BYTES:
        raise MeasurementError(
            f"the files of a run have {n_bytes} bytes (limit {FILES_LIMIT_BYTES}); record less, such as fewer tokens"
        )
    return files


def file_within(folder: Path, name: str) -> Path:
    """Return the place of a file below a folder; `LinkError` for a name that leads out of it."""
    parts = PurePosixPath(name)
    if parts.is_absolute() or ".." in parts.parts or not parts.parts or "\0" in name:
        raise LinkError(f"{name!r} is not a name of a file in the folder of a run: garbage")
    return folder / parts

"""Policies by shape in files: written whole, read with one clear error that names the field."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from perfsuite.errors import PolicyError
from perfsuite.experiments.shapes.policy_record import SCHEMA, ShapePolicy
from perfsuite.records.codec import from_plain, plain_json, to_plain
from perfsuite.records.json_file import write_json

_TODO = "expected a file of 'perfsuite policy'"


def write_policy(policy: ShapePolicy, path: Path) -> None:
    """Write a policy whole; PolicyError where the file cannot be written."""
    write_json(path, policy_plain(policy), PolicyError)


def read_policy(path: Path) -> ShapePolicy:
    """Read a policy; PolicyError names the file, the field, what it is and what is expected."""
    return policy_from_plain(plain_json(path, PolicyError, _TODO), str(path))


def policy_plain(policy: ShapePolicy) -> dict[str, Any]:
    """Return a policy as dicts, lists, numbers and strings; a choice that is not tiled has no tile and no vector."""
    return {"schema": SCHEMA, **_without_nulls(to_plain(policy))}


def policy_from_plain(plain: object, where: str) -> ShapePolicy:
    """Rebuild from `policy_plain`; PolicyError begins with `where` and names the field."""
    return from_plain(plain, ShapePolicy, where, PolicyError, _TODO, schema=SCHEMA)


def _without_nulls(plain: Any) -> Any:
    if isinstance(plain, dict):
        return {name: _without_nulls(value) for name, value in plain.items() if value is not None}
    return [_without_nulls(each) for each in plain] if isinstance(plain, list | tuple) else plain

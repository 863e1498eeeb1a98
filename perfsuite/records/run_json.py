"""The JSON of a ``run.json``, guarded and checked field by field, for whoever builds something from it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

from perfsuite.errors import PerfsuiteError
from perfsuite.records.run_fields import RUN_FIELDS

#: Raised whenever a field changes its meaning.
SCHEMA = 1

#: What the file of a run is called in the run's folder.
RUN_NAME = "run.json"


def read_plain_run(path: Path, error_type: type[PerfsuiteError] = PerfsuiteError) -> Mapping[str, Any]:
    """Return what the file holds; the fields that are there are of their types, and there are cases.

    Raises
    ------
    PerfsuiteError
        Of `error_type`: the file cannot be read, is no ``run.json`` of this schema, or a field holds what it cannot.
    """
    try:
        plain = json.loads(path.read_text("utf-8"), parse_constant=refuse_constant)
    except OSError as error:
        raise error_type(
            f"{path}: cannot be read ({error.strerror}); name the folder or the run.json of a run"
        ) from error
    except (ValueError, RecursionError) as error:
        raise error_type(f"{path}: is not JSON ({error}); name the folder or the run.json of a run") from error
    schema = plain.get("schema") if isinstance(plain, dict) else type(plain).__name__
    if schema != SCHEMA or isinstance(schema, bool):
        raise error_type(f"{path}: is no run.json of schema {SCHEMA} (schema is {schema!r}); run again")
    if "cases" not in plain:
        raise error_type(f"{path}: lacks the field 'cases'; run again")
    if wrong := RUN_FIELDS(plain):
        raise error_type(f"{path}: {wrong.removeprefix('.')}; run again")
    return dict(plain)


def refuse_constant(name: str) -> NoReturn:
    """Refuse what Python's parser takes for a number though JSON has none of it: NaN and the infinities."""
    raise ValueError(f"{name} is no number of JSON")

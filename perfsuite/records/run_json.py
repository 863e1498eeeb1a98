"""The JSON of a ``run.json``, guarded and checked field by field, for whoever builds something from it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from perfsuite.errors import PerfsuiteError
from perfsuite.records.codec import double, from_plain, plain_json
from perfsuite.records.run_fields import RunFields

#: Raised whenever a field changes its meaning.
SCHEMA = 1

#: What the file of a run is called in the run's folder.
RUN_NAME = "run.json"

#: Ratios closer to 0 are none, and a time over one would be infinite.
_SMALLEST_RATIO = 1e-12


def read_plain_run(path: Path, error_type: type[PerfsuiteError] = PerfsuiteError) -> Mapping[str, Any]:
    """Return what the file holds; the fields that are there are of their types, and there are cases.

    Raises
    ------
    PerfsuiteError
        Of `error_type`: the file cannot be read, is no ``run.json`` of this schema, or a field holds what it cannot.
    """
    plain: Mapping[str, Any] = plain_json(path, error_type, "name the folder or the run.json of a run")
    cases = from_plain(plain, RunFields, str(path), error_type, "run again", schema=SCHEMA)["cases"]
    if twice := double(case["id"] for case in cases if "id" in case):
        raise error_type(f"{path}: cases{twice}; run again")
    for case in cases:
        if 0.0 < (ratio := case.get("change_ratio") or 0.0) < _SMALLEST_RATIO:
            told = f"cases[{case.get('id')!r}].change_ratio is {ratio}, expected 0 or a number from {_SMALLEST_RATIO}"
            raise error_type(f"{path}: {told}; run again")
    return plain

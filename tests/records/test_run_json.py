"""The JSON of a run, for three readers."""

from __future__ import annotations

from pathlib import Path

import pytest

from perfsuite.errors import BaselineError, PerfsuiteError
from perfsuite.records.run_json import RUN_NAME, read_plain_run


def test_what_fits_is_returned_as_it_is(tmp_path: Path) -> None:
    """Fields that are not known stay, and none is asked for but the cases."""
    path = tmp_path / RUN_NAME
    path.write_text('{"schema": 1, "cases": [{"id": "a"}], "other": 1}')
    assert read_plain_run(path) == {"schema": 1, "cases": [{"id": "a"}], "other": 1}


@pytest.mark.parametrize("error_type", [PerfsuiteError, BaselineError])
@pytest.mark.parametrize(
    ("content", "reported"),
    [
        ("[" * 100_000, "is not JSON ("),
        ('{"schema": 1, "cases": NaN}', "is not JSON (NaN is not a number of JSON)"),
        ('{"schema": true, "cases": []}', "schema is True, expected 1; run again"),
        ('{"schema": 1}', "cases is missing; run again"),
        ('{"schema": 1, "cases": [7]}', "cases[0] is 7, expected an object; run again"),
        ('{"schema": 1, "cases": [], "fingerprint": {"own": {"soc": 1}}}', "fingerprint['own']['soc'] is 1, expected"),
    ],
)
def test_what_does_not_fit_is_one_line(
    tmp_path: Path, error_type: type[PerfsuiteError], content: str, reported: str
) -> None:
    """The error is of the reader's own kind, and names the path, the way and the value."""
    path = tmp_path / RUN_NAME
    path.write_text(content)
    with pytest.raises(error_type) as raised:
        read_plain_run(path, error_type)
    assert type(raised.value) is error_type
    assert str(raised.value).startswith(f"{path}: {reported}")
    assert "\n" not in str(raised.value)

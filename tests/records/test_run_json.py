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


def test_the_error_is_of_the_readers_own_kind(tmp_path: Path) -> None:
    path = tmp_path / RUN_NAME
    path.write_text('{"schema": 1, "cases": [], "fingerprint": {"own": {"soc": 1}}}')
    for error_type in (PerfsuiteError, BaselineError):
        with pytest.raises(error_type, match=r"fingerprint\['own'\]\['soc'\] is 1, expected") as raised:
            read_plain_run(path, error_type)
        assert type(raised.value) is error_type

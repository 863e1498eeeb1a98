"""What a run measured of prefill and decode."""

from __future__ import annotations

from pathlib import Path

import pytest

from perfsuite.errors import PerfsuiteError
from perfsuite.report.measured_phases import read_measured_phases


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("[" * 100_000, "is not JSON ("),
        ('{"schema": 1, "cases": [{"id": "a", "samples_ns": [1e999]}]}', "cases['a'].samples_ns[0] is inf, expected"),
        ('{"schema": 1, "cases": [], "injected": true}', "was slowed down on purpose (--perf-inject)"),
        ('{"schema": 1, "cases": []}', "did not measure llama.cpp"),
        ('{"schema": 1, "cases": [], "fingerprint": {"llama": {}}}', "cannot be used (KeyError: 'workload')"),
    ],
)
def test_what_is_no_run_of_llama_is_one_line(tmp_path: Path, content: str, told: str) -> None:
    """Nesting without end and numbers without end are refused like what is missing."""
    path = tmp_path / "run.json"
    path.write_text(content)
    with pytest.raises(PerfsuiteError) as raised:
        read_measured_phases(path)
    assert str(raised.value).startswith(f"{path}: {told}")

"""The tool that says how far a run's forecasts are from what it measured."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from perfsuite.records.outcome import Judgement, Outcome
from perfsuite.report.run_file import write_run
from perfsuite.testing.run_files import synthetic_run

from .loaded_tool import loaded_tool


def judgement(case_id: str, *, expected_ns: int | None, measured_ns: int | None, limit_ns: int | None) -> Judgement:
    """Return a case that is new."""
    return Judgement(
        case_id=case_id,
        kind=case_id.partition("/")[0],
        samples_ns=() if measured_ns is None else (measured_ns,),
        measured_ns=measured_ns,
        floor_ns=None,
        expected_ns=expected_ns,
        limit_ns=limit_ns,
        baseline_ns=None,
        change_ratio=None,
        outcome=Outcome.NEW,
        reason="",
    )


def test_forecasts_are_held_against_what_was_measured(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each phase and each operator of 20 us and more has its ratio, and the operators of a phase their median error."""
    judgements = (
        judgement("phase/m/s/decode", expected_ns=9_000_000, measured_ns=10_000_000, limit_ns=20_000_000),
        judgement("operator/m/s/decode/up", expected_ns=150_000, measured_ns=100_000, limit_ns=None),
        judgement("operator/m/s/decode/down", expected_ns=80_000, measured_ns=100_000, limit_ns=None),
        judgement("operator/m/s/decode/out", expected_ns=90_000, measured_ns=100_000, limit_ns=None),
        judgement("operator/m/s/decode/short", expected_ns=9_000, measured_ns=19_999, limit_ns=None),
        judgement("operator/m/s/decode/unknown", expected_ns=None, measured_ns=100_000, limit_ns=None),
        judgement("operator/m/s/prefill/unmeasured", expected_ns=100_000, measured_ns=None, limit_ns=None),
    )
    path = write_run(replace(synthetic_run(n_cases=1), judgements=judgements), tmp_path)
    loaded_tool("forecast_errors").main([str(path)])
    _, *lines = capsys.readouterr().out.splitlines()
    assert [" ".join(line.split()) for line in lines] == [
        "0.90 phase/m/s/decode 10.0 ms, limit 2.00",
        "0.80 operator/m/s/decode/down 100 µs",
        "0.90 operator/m/s/decode/out 100 µs",
        "1.50 operator/m/s/decode/up 100 µs",
        "decode: 3 operators, the median is 20.0% off",
        "all: 3 operators, the median is 20.0% off",
    ]

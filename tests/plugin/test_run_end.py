"""The last screen of a run under pytest."""

from __future__ import annotations

import pytest

from perfsuite.errors import MeasurementError

from .conftest import FakeDevice

MODEL = "--model=smollm2-135m-l2-q8_0"
OUTPUTS = "perfsuite.plugin.run_outputs"


def _run(pytester: pytest.Pytester, *arguments: str) -> pytest.RunResult:
    own = ("--perf-dir=run", "-p", "no:cacheprovider", "-k", "test_phase")
    return pytester.runpytest_inprocess("--device=host", MODEL, *own, *arguments)


def test_what_needs_the_run_is_not_advised_without_it(
    pytester: pytest.Pytester, fake_device: FakeDevice, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run that could not be written is told as such and fails; no command names it."""
    _run(pytester, "--baseline=record")
    fake_device.slowdown[""] = 3.0

    def fail(*_: object) -> None:
        raise MeasurementError("run/run.json: cannot be written (No space left on device)")

    monkeypatch.setattr(f"{OUTPUTS}.write_run", fail)
    result = _run(pytester)
    assert result.ret == 1
    result.stdout.fnmatch_lines(["*4 regressed*; run.json was not written", "what next:", "*error: run/run.json: *"])
    result.stdout.no_fnmatch_line("*baseline approve*")


def test_names_in_complaints_and_errors_steer_no_terminal(
    pytester: pytest.Pytester, fake_device: FakeDevice, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An escape sequence is written out in the line of what could not be written, be it the run or what follows it."""

    def fail(*_: object) -> None:
        raise MeasurementError("a\x1b[31mb: cannot be written")

    for writer in ("write_observation", "write_run"):
        monkeypatch.setattr(f"{OUTPUTS}.{writer}", fail)
        result = _run(pytester)
        assert "\x1b[31m" not in result.stdout.str()
        result.stdout.fnmatch_lines([r"*a\x1b?31mb: cannot be written*"])


def test_names_in_notes_steer_no_terminal(
    pytester: pytest.Pytester, fake_device: FakeDevice, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the stored baselines show is told in the same way."""
    monkeypatch.setattr("perfsuite.plugin.session.PerfSession.baseline_notes", lambda _: ("c\x1b[2Jd",))
    result = _run(pytester)
    assert "\x1b[2J" not in result.stdout.str()
    result.stdout.fnmatch_lines([r"  c\x1b?2Jd"])

"""The last screen of a run under pytest."""

from __future__ import annotations

import pytest

from perfsuite.errors import MeasurementError
from perfsuite.records.outcome import NOTHING_JUDGED_EXIT, Outcome
from perfsuite.report.run_reader import read_run_file

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
    result.stdout.fnmatch_lines(
        ["*4 regressed, 3 pass; run.json was not written", "what next:", "*error: run/run.json: *"]
    )
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


def test_the_last_screen_is_headed_by_the_engine(pytester: pytest.Pytester, fake_device: FakeDevice) -> None:
    """Above the tables stands llama.cpp with version, commit and build, in JUnit's properties too."""
    engine = {**fake_device.payload["engine"], "engine_version": "llama b6123, ggml 0.25.3 abc1234"}
    fake_device.payload = {**fake_device.payload, "engine": engine}
    result = _run(pytester, "--junitxml=junit.xml")
    result.stdout.fnmatch_lines(["*= performance =*", "llama.cpp b6123 (abc1234), build *", "Phases *"])
    text = (pytester.path / "junit.xml").read_text("utf-8")
    assert 'name="perf_engine" value="llama.cpp b6123 (abc1234), build ' in text


def test_a_run_that_judged_nothing_says_so_last(pytester: pytest.Pytester, fake_device: FakeDevice) -> None:
    """Where all cases are invalid the exit code is the suite's own, or 0 on request; one case that is new is enough."""
    assert _run(pytester).ret == 0
    fake_device.contended = True
    result = _run(pytester)
    assert result.ret == NOTHING_JUDGED_EXIT
    assert _last_of_ours(result).startswith(f"perfsuite: nothing was judged: exit code {NOTHING_JUDGED_EXIT};")
    allowed = _run(pytester, "--perf-allow-undecided")
    assert allowed.ret == 0
    assert _last_of_ours(allowed).startswith("perfsuite: nothing was judged")
    assert _run(pytester, "--perf-strict").ret == 1


def test_what_was_to_be_recorded_and_was_not_is_an_error(pytester: pytest.Pytester, fake_device: FakeDevice) -> None:
    """No case that can be a reference: exit code 1 and one line with the reason, however much may be undecided."""
    fake_device.contended = True
    result = _run(pytester, "--baseline=record", "--perf-allow-undecided")
    assert result.ret == 1
    assert _last_of_ours(result).startswith("perfsuite: error: --baseline=record: nothing was recorded: threads waited")
    assert not list(pytester.path.glob("baselines/**/*.json"))


def _last_of_ours(result: pytest.RunResult) -> str:
    """The line before pytest's own last one."""
    return next(line for line in reversed(result.outlines[:-1]) if line)


def test_what_next_repeats_the_choice_of_cases(pytester: pytest.Pytester, fake_device: FakeDevice) -> None:
    """What was asked for is advised again, its expression quoted; to record, where it was to be recorded."""
    fake_device.contended = True
    chosen = ("-k", "test_phase and not copy")
    again = "     pytest --device=host * -k 'test_phase and not copy'"
    _run(pytester, *chosen).stdout.fnmatch_lines(["what next:", again])
    _run(pytester, *chosen, "--baseline=record").stdout.fnmatch_lines(["what next:", f"{again} --baseline=record"])
    fake_device.contended = False
    recorded = _run(pytester, *chosen, "--baseline=record")
    recorded.stdout.no_fnmatch_line("what next:")
    recorded.stdout.fnmatch_lines(["  nothing is left to do"])


@pytest.mark.usefixtures("without_engines")
def test_figures_of_a_busy_machine_are_rough(pytester: pytest.Pytester, fake_device: FakeDevice) -> None:
    """Who competes is said at once and last; medians of what was measured are marked, and judged by nothing."""
    assert _run(pytester, "--baseline=record").ret == 0
    fake_device.contended = True
    result = _run(pytester)
    seen = "threads waited 50 % of the time *; others take 40 % of the processors (cc1plus 190 % of one)"
    result.stdout.fnmatch_lines(
        [
            f"perfsuite: the machine is busy: {seen}",
            "perfsuite: going on; --perf-wait-quiet=5m would wait for quiet",
            "decode * ~*s * ~* invalid",
            "~ rough: *",
            f"  llama: the machine was busy from the beginning: {seen}",
        ]
    )
    run = read_run_file(pytester.path / "run")
    assert {(each.outcome, len(each.samples_ns)) for each in run.judgements} == {(Outcome.INVALID, 10)}
    assert run.n_discarded_replicates["llama"] == 10


def test_a_run_waits_for_quiet_and_begins_anew(pytester: pytest.Pytester, fake_device: FakeDevice) -> None:
    """What was measured before is left out, and ten valid replicates follow."""
    fake_device.contended, fake_device.n_busy_looks = True, 3
    result = _run(pytester, "--perf-wait-quiet=1m")
    assert result.ret == 0
    result.stdout.fnmatch_lines(
        ["perfsuite: the machine is busy: *", "perfsuite: waiting for quiet, 60 s at most: *", "perfsuite: quiet: *"]
    )
    run = read_run_file(pytester.path / "run")
    assert {len(each.samples_ns) for each in run.judgements} == {10}
    assert run.n_discarded_replicates["llama"] == 2

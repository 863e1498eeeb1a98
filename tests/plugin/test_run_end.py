"""The last screen of a run under pytest."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from perfsuite.errors import MeasurementError
from perfsuite.experiments.measuring import Measuring
from perfsuite.measure.plan import KernelPlan, LlamaPlan
from perfsuite.records.case import is_question
from perfsuite.records.outcome import NOTHING_JUDGED_EXIT, SUSPECT_EXIT, CaseSamples, Judgement, Outcome
from perfsuite.verdict.compare import judge
from tests.fake_device import BRIEFLY, HostRuns

#: What each run has besides.
USUAL = ("-k", "test_phase")

MODEL = "--model=smollm2-135m-l2-q8_0"
OUTPUTS = "perfsuite.experiments.run_outputs"
_MEASURE = Measuring.measure


def test_what_needs_the_run_is_not_advised_without_it(runs: HostRuns, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that could not be written is reported as such and fails; no command names it."""
    runs("--baseline=record")
    runs.device.slowdown[""] = 3.0

    def fail(*_: object) -> None:
        raise MeasurementError("run/run.json: cannot be written (No space left on device)")

    monkeypatch.setattr(f"{OUTPUTS}.write_run", fail)
    result = runs()
    assert result.ret == 1
    result.stdout.fnmatch_lines(
        ["*4 regressed, 3 pass; run.json was not written", "what next:", "*error: run/run.json: *"]
    )
    result.stdout.no_fnmatch_line("*baseline approve*")


def test_names_in_complaints_and_errors_steer_no_terminal(runs: HostRuns, monkeypatch: pytest.MonkeyPatch) -> None:
    """An escape sequence is written out in the line of what could not be written: the run, or what follows it."""

    def fail(*_: object) -> None:
        raise MeasurementError("a\x1b[31mb: cannot be written")

    for writer in ("write_observation", "write_run"):
        monkeypatch.setattr(f"{OUTPUTS}.{writer}", fail)
        result = runs()
        assert "\x1b[31m" not in result.stdout.str()
        result.stdout.fnmatch_lines([r"*a\x1b?31mb: cannot be written*"])


def test_names_in_notes_steer_no_terminal(runs: HostRuns, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("perfsuite.experiments.session.PerfSession.baseline_notes", lambda _: ("c\x1b[2Jd",))
    result = runs()
    assert "\x1b[2J" not in result.stdout.str()
    result.stdout.fnmatch_lines([r"  c\x1b?2Jd"])


def test_the_last_screen_is_headed_by_the_engine(runs: HostRuns) -> None:
    """Above the tables stands llama.cpp with version, commit and build, in JUnit's properties too."""
    engine = {**runs.device.payload["engine"], "engine_version": "llama b6123, ggml 0.25.3 abc1234"}
    runs.device.payload = {**runs.device.payload, "engine": engine}
    result = runs("--junitxml=junit.xml")
    result.stdout.fnmatch_lines(["*= performance =*", "llama.cpp b6123 (abc1234), build *", "Phases *"])
    text = (runs.pytester.path / "junit.xml").read_text("utf-8")
    assert 'name="perf_engine" value="llama.cpp b6123 (abc1234), build ' in text
    assert 'name="perf_outcome" value="new"' in text
    assert 'name="perf_measured_ns"' in text


def test_a_run_that_judged_nothing_says_so_last(runs: HostRuns) -> None:
    """Where all cases are invalid the exit code is the suite's own, or 0 on request; one case that is new is enough."""
    assert runs().ret == 0
    runs.device.contended = True
    result = runs(BRIEFLY)
    assert result.ret == NOTHING_JUDGED_EXIT
    assert _last_of_ours(result).startswith(f"perfsuite: nothing was judged: exit code {NOTHING_JUDGED_EXIT};")
    allowed = runs(BRIEFLY, "--perf-allow-undecided")
    assert allowed.ret == 0
    assert _last_of_ours(allowed).startswith("perfsuite: nothing was judged")
    assert runs(BRIEFLY, "--perf-strict").ret == 1


@pytest.mark.usefixtures("without_engines")
def test_a_run_whose_phases_could_not_be_judged_is_no_pass(runs: HostRuns, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many other cases pass: the run was asked for end_to_end, prefill and decode."""

    def unmeasured(samples: CaseSamples, **known: Any) -> Judgement:
        found = judge(samples, **known)
        return replace(found, outcome=Outcome.INVALID) if is_question(samples.case_id) else found

    assert runs("--baseline=record").ret == 0
    monkeypatch.setattr("perfsuite.experiments.session.judge", unmeasured)
    result = runs()
    assert result.ret == NOTHING_JUDGED_EXIT
    assert _last_of_ours(result).startswith(f"perfsuite: no whole phase was judged: exit code {NOTHING_JUDGED_EXIT};")


@pytest.mark.parametrize("is_too_few", [False, True])
@pytest.mark.parametrize(
    ("options", "exit_code", "end"),
    [
        ((), SUSPECT_EXIT, "11; with --perf-suspect=pass it is 0"),
        (("--perf-suspect=pass",), 0, "0, by --perf-suspect=pass"),
        (("--perf-suspect=fail",), 1, "1; with --perf-suspect=pass it is 0"),
    ],
)
def test_what_looks_slower_or_had_too_few_pairs_has_an_exit_code_of_its_own(
    runs: HostRuns,
    monkeypatch: pytest.MonkeyPatch,
    is_too_few: bool,
    options: tuple[str, ...],
    exit_code: int,
    end: str,
) -> None:
    """11, or what was asked for; the case shows as suspect, and the last line says why."""
    _make_suspect(monkeypatch, is_too_few=is_too_few)
    result = runs(*options)
    assert result.ret == exit_code
    why = "fewer than five pairs" if is_too_few else "looks slower, not proven"
    assert _last_of_ours(result) == f"perfsuite: {why}: exit code {end}"
    assert result.parseoutcomes().get("suspect", 0) == (not is_too_few)


@pytest.mark.usefixtures("without_engines")
def test_what_fails_counts_for_more_than_what_looks_slower(runs: HostRuns, monkeypatch: pytest.MonkeyPatch) -> None:
    """A strict run fails by the suspect case; one that judged nothing says so, whatever the number of its pairs."""
    runs()
    _make_suspect(monkeypatch)
    strict = runs("--perf-strict", "--perf-suspect=pass")
    assert (strict.ret, strict.parseoutcomes()["failed"]) == (1, 1)
    _make_suspect(monkeypatch, is_too_few=True)
    runs.device.contended = True
    assert runs().ret == NOTHING_JUDGED_EXIT


def _make_suspect(monkeypatch: pytest.MonkeyPatch, *, is_too_few: bool = False) -> None:
    def suspicious(samples: CaseSamples, **known: Any) -> Judgement:
        found = judge(samples, **known)
        is_suspect = samples.case_id.endswith("/decode") and not is_too_few
        return replace(found, outcome=Outcome.SUSPECT) if is_suspect else found

    def measured(self: Measuring, *arguments: Any) -> None:
        _MEASURE(self, *arguments)
        self.groups["llama"] = replace(self.groups["llama"], is_too_few=is_too_few)

    monkeypatch.setattr("perfsuite.experiments.session.judge", suspicious)
    monkeypatch.setattr(Measuring, "measure", measured)


def test_what_was_to_be_recorded_and_was_not_is_an_error(runs: HostRuns) -> None:
    """No case that can be a reference: exit code 1 and one line with the reason, however much may be undecided."""
    runs.device.contended = True
    result = runs("--baseline=record", "--perf-allow-undecided")
    assert result.ret == 1
    assert _last_of_ours(result).startswith("perfsuite: error: --baseline=record: nothing was recorded: threads waited")
    assert not list(runs.pytester.path.glob("baselines/**/*.json"))


def _last_of_ours(result: pytest.RunResult) -> str:
    return next(line for line in reversed(result.outlines[:-1]) if line)


def test_what_next_repeats_the_choice_of_cases(runs: HostRuns) -> None:
    """What was asked for is advised again, its expression quoted; to record, where it had to be recorded."""
    runs.device.contended = True
    chosen = ("-k", "test_phase and not copy")
    again = "     pytest --device=host * -k 'test_phase and not copy'"
    runs(*chosen).stdout.fnmatch_lines(["what next:", again])
    runs(*chosen, "--baseline=record").stdout.fnmatch_lines(["what next:", f"{again} --baseline=record"])
    runs.device.contended = False
    recorded = runs(*chosen, "--baseline=record")
    recorded.stdout.no_fnmatch_line("what next:")
    recorded.stdout.fnmatch_lines(["  nothing is left to do"])


@pytest.mark.usefixtures("without_engines")
def test_figures_of_a_busy_machine_are_rough(runs: HostRuns) -> None:
    """Who competes is stated at once and last; medians of what was measured are marked, and judged by nothing."""
    assert runs("--baseline=record").ret == 0
    runs.device.contended = True
    result = runs()
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
    run = runs.file()
    assert {(each.outcome, len(each.samples_ns)) for each in run.judgements} == {(Outcome.INVALID, 10)}
    assert run.n_discarded_replicates["llama"] == 10


@pytest.mark.usefixtures("without_engines")
def test_a_saturated_device_is_refused_at_once(runs: HostRuns) -> None:
    """After two replicates nothing more is measured, of no group; every case has the reason, which is stated once."""
    runs.device.contended, runs.device.others_ratio = True, 0.8
    result = runs("-k", "test_phase or test_kernel")
    assert result.ret == NOTHING_JUDGED_EXIT
    result.stdout.no_fnmatch_line("*going on*")
    reason = (
        "the device is saturated: others had 80 % and 80 % of its processors' time in the first 2 runs (refused above "
        "50 %); others take 80 % of the processors (cc1plus 190 % of one); end them, or wait for quiet "
        "(--perf-wait-quiet=5m), and run again"
    )
    assert result.outlines.count(f"perfsuite: {reason}") == 1
    assert sum(isinstance(each, LlamaPlan) for each in runs.device.plans) == 2
    assert not any(isinstance(each, KernelPlan) for each in runs.device.plans)
    judgements = runs.file().judgements
    assert {each.case_id.partition("/")[0] for each in judgements} == {"phase", "kernel"}
    assert {(each.outcome, each.reason) for each in judgements} == {(Outcome.INVALID, reason)}


def test_a_saturated_device_is_waited_for_first(runs: HostRuns) -> None:
    """Where quiet comes in time the run is as any other; where it does not, it is refused then."""
    runs.device.contended, runs.device.others_ratio, runs.device.n_busy_looks = True, 0.8, 3
    assert runs("--perf-wait-quiet=1m").ret == 0


def test_a_run_waits_for_quiet_and_begins_anew(runs: HostRuns) -> None:
    """What was measured before is left out, and ten valid replicates follow."""
    runs.device.contended, runs.device.n_busy_looks = True, 3
    result = runs("--perf-wait-quiet=1m")
    assert result.ret == 0
    result.stdout.fnmatch_lines(
        ["perfsuite: the machine is busy: *", "perfsuite: waiting for quiet, 60 s at most: *", "perfsuite: quiet: *"]
    )
    run = runs.file()
    assert {len(each.samples_ns) for each in run.judgements} == {10}
    assert run.n_discarded_replicates["llama"] == 2

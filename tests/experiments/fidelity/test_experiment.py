"""Cases of ``--perf-fidelity`` in whole runs of the plugin, with nothing measured."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from perfsuite.errors import MeasurementError
from perfsuite.experiments.fidelity.experiment import LONG_KERNELS, FidelityRequest
from perfsuite.experiments.fidelity.scored_run import FidelityKind, FidelityRow, FidelityRun
from tests.fake_device import FakeDevice, HostRuns
from tests.synthetic_fidelity import row

#: What each run has besides.
USUAL = ("--threads=2", "-o", "perf_session_spread=0.01")

PHASES = ("end_to_end", "prefill", "decode", "embedding", "copy", "softmax", "sampling")


@dataclass
class Recorder:
    """Answers with accurate rows for what is asked for, except the changed ones, and notes the requests."""

    changed: dict[str, FidelityRow | None] = field(default_factory=dict)
    error: Exception | None = None
    problems: tuple[str, ...] = ()
    requests: list[FidelityRequest] = field(default_factory=list)

    def record(self, request: FidelityRequest, announce: Callable[[str], None]) -> FidelityRun:
        self.requests.append(request)
        announce("a step")
        if self.error:
            raise self.error
        names = {FidelityKind.PHASES: PHASES, FidelityKind.KERNELS: request.case_ids}
        asked = (name for kind, found in names.items() if kind in request.kinds for name in found)
        found = (self.changed.get(name, row(name, 10**6, 10**6)) for name in asked)
        rows = tuple(each for each in found if each is not None)
        return FidelityRun(device="host", platform=None, conditions={}, rows=rows, problems=self.problems)


@pytest.fixture
def recorder(monkeypatch: pytest.MonkeyPatch, fake_device: FakeDevice) -> Recorder:
    found = Recorder()
    monkeypatch.setattr("perfsuite.experiments.fidelity.experiment.record_fidelity", found.record)
    return found


def collected(result: pytest.RunResult) -> list[str]:
    return [line.partition("[")[2].rstrip("]") for line in result.outlines if "::test_fidelity[" in line]


@pytest.mark.usefixtures("recorder")
def test_cases_are_listed_and_nothing_is_run(runs: HostRuns) -> None:
    result = runs("--perf-fidelity", "--collect-only", "-q", "-k", "test_fidelity")
    expected = [f"fidelity/phase/{name}" for name in PHASES]
    expected += [f"fidelity/{case_id}" for case_id in LONG_KERNELS]
    assert collected(result) == [*expected, "fidelity/kernel/mean"]


@pytest.mark.usefixtures("recorder")
@pytest.mark.parametrize(("scenario", "absent"), [("p0-g3", {"prefill", "embedding"}), ("p8-g0", {"decode"})])
def test_a_phase_that_the_scenario_lacks_is_no_case(runs: HostRuns, scenario: str, absent: set[str]) -> None:
    """Without a prompt there is no prefill and no gather of it, without generation no decode."""
    result = runs("--perf-fidelity", f"--scenario={scenario}", "--collect-only", "-q", "-k", "phase")
    assert {each.rpartition("/")[2] for each in collected(result)} == set(PHASES) - absent


def test_accurate_timings_pass(runs: HostRuns, recorder: Recorder) -> None:
    """They pass, nothing else is measured, the rows are beside the run's file, and accuracy is no baseline."""
    result = runs("--perf-fidelity", "--baseline=record", "-k", "test_fidelity")
    result.assert_outcomes(passed=len(PHASES) + len(LONG_KERNELS) + 1, deselected=result.parseoutcomes()["deselected"])
    assert runs.outcomes() == {"pass"}
    (request,) = recorder.requests
    assert request.kinds == {FidelityKind.PHASES, FidelityKind.KERNELS}
    assert request.case_ids == LONG_KERNELS
    stored = json.loads((runs.pytester.path / "run" / "fidelity.json").read_text())
    assert [each["name"] for each in stored["phases"]] == [*PHASES]
    assert not (runs.pytester.path / "baselines").exists()


def test_what_is_wrong_or_not_measured_is_told(runs: HostRuns, recorder: Recorder) -> None:
    recorder.changed = {"decode": row("decode", 1_050_000, 10**6), "copy": None}
    recorder.problems = ("phases: disturbed in each of 3 tries",)
    result = runs("--perf-fidelity", "-k", "fidelity and phase")
    result.assert_outcomes(passed=len(PHASES) - 2, failed=1, deselected=result.parseoutcomes()["deselected"])
    found = runs.cases()
    outcomes = [found[f"fidelity/phase/{name}"]["outcome"] for name in ("decode", "copy")]
    assert outcomes == ["impossible", "invalid"]
    result.stdout.fnmatch_lines(["*measured wrongly, expected accurate to 99.9 %: 1.05 ms against 1.00 ms*"])
    strict = runs("--perf-fidelity", "--perf-strict", "-k", "fidelity and copy")
    assert strict.ret == pytest.ExitCode.TESTS_FAILED
    strict.stdout.fnmatch_lines(["*invalid: fidelity/phase/copy: phases: disturbed in each of 3 tries*"])


def test_an_error_leaves_every_case_invalid(runs: HostRuns, recorder: Recorder) -> None:
    recorder.error = MeasurementError("no room for the trace")
    result = runs("--perf-fidelity", "-k", "fidelity and phase")
    assert runs.outcomes() == {"invalid"}
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["perfsuite: error: no room for the trace"])


@pytest.mark.parametrize(
    ("chosen", "kinds", "case_ids"),
    [
        ("fidelity and phase", {FidelityKind.PHASES}, ()),
        ("fidelity and silu", {FidelityKind.KERNELS}, ("kernel/silu_mul/count1048576/f32",)),
        ("fidelity and mean", {FidelityKind.KERNELS}, LONG_KERNELS),
    ],
)
def test_only_what_is_selected_is_measured(
    runs: HostRuns, recorder: Recorder, chosen: str, kinds: object, case_ids: tuple[str, ...]
) -> None:
    runs("--perf-fidelity", "--perf-inject=decode=0.05", "-k", chosen)
    (request,) = recorder.requests
    assert (request.kinds, request.case_ids) == (kinds, case_ids)
    assert (request.inject_phases, request.inject_ratio) == (("decode",), 0.05)

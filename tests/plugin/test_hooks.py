"""Whole runs of the plugin, with stored records in place of measurements."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import pytest

from perfsuite.device.fingerprint import host_fingerprint
from perfsuite.errors import MeasurementError
from perfsuite.measure.board import local_board
from perfsuite.records.events import EngineRecord, Phase
from perfsuite.records.outcome import NOTHING_JUDGED_EXIT
from tests.fake_device import HostRuns

#: What each run has besides.
USUAL = ("-o", "perf_session_spread=0.01")


def test_the_first_run_is_new_and_an_equal_one_passes_against_it(runs: HostRuns) -> None:
    result = runs("--baseline=record")
    assert result.ret == 0
    cases = runs.cases()
    kinds = [case["kind"] for case in cases.values()]
    assert kinds.count("phase") >= 7
    assert kinds.count("operator") >= 40
    assert kinds.count("kernel") >= 20
    assert runs.outcomes() == {"new"}
    result.stdout.fnmatch_lines(["perfsuite: device host:*", f"*{len(cases)} new*"])
    assert runs().ret == 0
    assert runs.outcomes() == {"pass"}


@pytest.mark.usefixtures("without_engines")
def test_a_drift_of_the_whole_machine_is_no_regression(runs: HostRuns) -> None:
    """By the profile's own spread, a session that takes a tenth longer passes at what the spread resolves."""
    runs("--baseline=record", "-k", "not kernel")
    runs.device.slowdown[""] = 1.1
    assert runs("-k", "not kernel", "-o", "perf_session_spread=0.15").ret == 0
    assert runs.outcomes() == {"pass"}


def test_a_slower_operator_is_regressed_and_named(runs: HostRuns) -> None:
    runs("--baseline=record", "-k", "not kernel")
    runs.device.slowdown["ffn_swiglu"] = 20.0
    result = runs("-k", "not kernel")
    assert result.ret == 1
    regressed = {case_id for case_id, case in runs.cases().items() if case["outcome"] == "regressed"}
    prefix = "smollm2-135m-l2-q8_0/siso"
    assert {case_id for case_id in regressed if case_id.startswith("operator/")} == {
        f"operator/{prefix}/prefill/ffn_swiglu",
        f"operator/{prefix}/decode/ffn_swiglu",
    }
    assert f"phase/{prefix}/prefill" in regressed
    result.stdout.fnmatch_lines([f"  regressed: phase/{prefix}/decode: *", "      ffn_swiglu +* (* %), unexplained *"])
    run = runs.plain()
    assert run["uniform_shift"] is None
    assert {each["id"] for each in run["attribution"]} == {f"phase/{prefix}/prefill", f"phase/{prefix}/decode"}
    for each in run["attribution"]:
        (carrier,) = each["carriers"]
        assert (carrier["role"], carrier["is_significant"]) == ("ffn_swiglu", True)
        assert carrier["lost_ns"] == pytest.approx(each["lost_ns"], rel=0.2)
        assert each["unexplained_ns"] == each["lost_ns"] - carrier["lost_ns"]


def test_a_slowdown_of_everything_is_told_once(runs: HostRuns) -> None:
    runs("--baseline=record", "-k", "not kernel")
    runs.device.slowdown[""] = 1.3
    result = runs("-k", "not kernel")
    assert result.ret == 1
    shift = runs.plain()["uniform_shift"]
    assert shift["ratio"] == pytest.approx(1.3, rel=0.01)
    result.stdout.fnmatch_lines(["  everything is 30.* % slower (* cases): a difference of frequency, *"])
    result.stdout.no_fnmatch_line("*unexplained*")
    result.stdout.fnmatch_lines(["  ... and * more, in run.json"])


@pytest.mark.parametrize(
    ("operator", "slowdown", "exit_code", "outcome"),
    [("ffn_up", 0.5, 0, "improved"), ("result_output", 0.01, 1, "impossible")],
)
def test_what_is_faster_improved_unless_it_undercuts_the_floor(
    runs: HostRuns, operator: str, slowdown: float, exit_code: int, outcome: str
) -> None:
    runs("--baseline=record", "-k", "test_operator")
    runs.device.slowdown[""] = slowdown
    result = runs("-k", f"test_operator and {operator}")
    assert (result.ret, runs.outcomes()) == (exit_code, {outcome})
    result.stdout.fnmatch_lines(["*2 passed*" if exit_code == 0 else "*2 failed*"])


def test_other_threads_are_new(runs: HostRuns) -> None:
    """A run that was asked for another number of threads has a baseline of its own, and says of what it has none."""
    runs("--baseline=record", "--threads=2", "-k", "test_phase")
    result = runs("--threads=1", "-k", "test_phase")
    assert result.ret == 0
    cases = runs.cases()
    assert {case["outcome"] for case in cases.values()} == {"new"}
    assert all("no baseline with threads 1 yet; record" in case["reason"] for case in cases.values())
    result.stdout.fnmatch_lines(["*7 new*"])


@pytest.mark.usefixtures("without_engines")
def test_another_machine_is_incomparable(runs: HostRuns, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where stored times judge, a machine that is not what it was is named with both values, and no case passes."""
    runs("--baseline=record", "-k", "test_phase")
    was = host_fingerprint()
    monkeypatch.setattr(local_board, "host_fingerprint", lambda *_: {**was, "governor": "new"})
    result = runs("-k", "test_phase")
    assert result.ret == NOTHING_JUDGED_EXIT
    cases = runs.cases()
    assert {case["outcome"] for case in cases.values()} == {"incomparable"}
    assert all(f"governor '{was['governor']}', now 'new'" in case["reason"] for case in cases.values())
    result.stdout.fnmatch_lines(["*7 incomparable*"])


@pytest.mark.usefixtures("without_engines")
def test_a_pass_against_one_session_says_at_what(runs: HostRuns) -> None:
    """With the spread that is in all cases pass at what it resolves; outcome, file and last lines say it."""
    stated = ("-o", "perf_session_spread=0.15", "--perf-step-share=0", "-k", "test_phase")
    runs("--baseline=record", *stated)
    result = runs(*stated)
    cases = runs.cases().values()
    assert {case["outcome"] for case in cases} == {"pass"}
    assert all(case["resolution_ratio"] == pytest.approx(0.27, abs=0.002) for case in cases)
    assert all("PASS at 27 %; default spread 15 %" in case["reason"] for case in cases)
    line = "  7 passed at 27 %: nothing is slower by more; for 2 %, record again: *"
    result.stdout.fnmatch_lines(["decode * pass at 27 %", "perfsuite: all 7 cases passed at 27 %", line])
    runs(*stated, "-o", "perf_resolution=0.2")
    assert runs.outcomes() == {"inconclusive"}
    runs(*stated, "-o", "perf_resolution=0.2", "--perf-resolution=0.4")
    assert runs.outcomes() == {"pass"}


@pytest.mark.usefixtures("without_engines")
def test_a_share_of_its_step_passes(runs: HostRuns) -> None:
    """An operator of a thousandth of decode that takes half as long again passes by its share, and fails without."""
    runs("--baseline=record", "-k", "not kernel")
    runs.device.slowdown["attn_norm"] = 1.5
    operator = "operator/smollm2-135m-l2-q8_0/siso/decode/attn_norm"
    runs("-k", "not kernel")
    passed = runs.cases()[operator]
    assert passed["outcome"] == "pass"
    assert re.search(r" 0\.0\d+ % of decode: passes up to 0\.2 % of it;", passed["reason"])
    assert passed["resolution_ratio"] == passed["margin_ratio"] > 0.5
    runs("-k", "not kernel", "--perf-step-share=0")
    assert runs.cases()[operator]["outcome"] == "regressed"


def test_without_opencl_the_kernels_are_skipped_with_the_fix(runs: HostRuns) -> None:
    runs.device.opencl_error = MeasurementError("no OpenCL platform is installed; pip install intel-opencl-rt")
    result = runs()
    assert result.ret == 0
    kernels = [case for case in runs.cases().values() if case["kind"] == "kernel"]
    assert {case["outcome"] for case in kernels} == {"invalid"}
    result.stdout.fnmatch_lines(["*pip install intel-opencl-rt*"])


def test_a_kernel_that_computes_wrongly_is_invalid(runs: HostRuns) -> None:
    """How fast a wrong kernel is does not count."""
    runs.device.wrong_kernels = True
    runs("-k", "test_kernel")
    assert runs.outcomes() == {"invalid"}


def test_what_no_case_claims_is_invalid(runs: HostRuns, monkeypatch: pytest.MonkeyPatch) -> None:
    from perfsuite.expectation import cases as module

    known = module.operator_cases
    monkeypatch.setattr(
        "perfsuite.experiments.phases.experiment.operator_cases",
        lambda workload: (case for case in known(workload) if case.role != "ffn_up"),
    )
    runs()
    case = runs.cases()["operator/smollm2-135m-l2-q8_0/siso/decode/ffn_up"]
    assert case["outcome"] == "invalid"
    assert "no case claims it" in case["reason"]


def test_benchmark_json_has_every_case_under_its_id(runs: HostRuns) -> None:
    """pytest-benchmark's JSON names each case by its id, with the measured samples as its rounds."""
    result = runs("--benchmark-json=bench.json")
    assert result.ret == 0
    benchmarks = json.loads((runs.pytester.path / "bench.json").read_text())["benchmarks"]
    cases = runs.cases()
    assert {each["name"] for each in benchmarks} == set(cases)
    for each in benchmarks:
        measured = sorted(cases[each["name"]]["samples_ns"])
        assert sorted(value * 1e9 for value in each["stats"]["data"]) == pytest.approx(measured, rel=1e-3, abs=1)


def test_without_benchmarks_a_case_is_judged_all_the_same(runs: HostRuns) -> None:
    """With benchmarks disabled, or their plugin off, a regression still fails."""
    runs("--baseline=record", "-k", "test_phase")
    runs.device.slowdown[""] = 3.0
    assert runs("-k", "test_phase", "--benchmark-disable").ret == 1
    assert runs("-k", "test_phase", "-p", "no:benchmark").ret == 1


def test_a_model_of_embeddings_has_one_phase_of_its_own(runs: HostRuns) -> None:
    """Of an encoder the prompt is listed, and no step of decoding or what follows one."""
    listed = runs("--collect-only", "-q", "-k", "test_phase", model="tiny-bert-q8_0").stdout.str()
    found = re.findall(r"test_phase\[phase/tiny-bert-q8_0/siso/(\w+)\]", listed)
    assert found == ["embedding", "embed", "end_to_end"]


def test_a_slower_embedding_is_attributed(runs: HostRuns) -> None:
    """Recorded and measured again, a slower operator of an embedding and its phase regress; the prompt has a speed."""
    record = EngineRecord.from_plain(runs.device.payload["engine"])
    kept = [span for span in record.spans if span.phase in (Phase.LOAD, Phase.PREFILL, Phase.END_TO_END)]
    spans = [replace(span, phase=Phase.EMBED) if span.phase is Phase.PREFILL else span for span in kept]
    runs.device.payload = {**runs.device.payload, "engine": replace(record, spans=tuple(spans)).to_plain()}
    runs("--baseline=record", "-k", "not kernel", model="tiny-bert-q8_0")
    runs.device.slowdown["ffn_gate"] = 2.0
    result = runs("-k", "not kernel", model="tiny-bert-q8_0")
    prefix = "tiny-bert-q8_0/siso"
    regressed = [case_id for case_id, case in runs.cases().items() if case["outcome"] == "regressed"]
    assert {f"phase/{prefix}/embed", f"operator/{prefix}/embed/ffn_gate"} <= set(regressed)
    assert not any("prefill" in case_id or "decode" in case_id for case_id in runs.cases())
    assert runs.cases()[f"phase/{prefix}/embed"]["tokens_per_s"]
    result.stdout.fnmatch_lines([f"  regressed: phase/{prefix}/embed: *", "      ffn_gate +* (* %), unexplained *"])


def test_a_case_of_ten_lines_is_judged(runs: HostRuns) -> None:
    runs.pytester.makepyfile(
        """
        import time

        def test_sort(perf):
            samples_ns = []
            for _ in range(5):
                started_ns = time.perf_counter_ns()
                sorted(range(10_000, 0, -1))
                samples_ns.append(time.perf_counter_ns() - started_ns)
            perf.check("function/sort-10k", samples_ns, limit_ns=10**12)

        def test_slow(perf):
            perf.check("function/slow", [5, 6, 7], limit_ns=1)
        """
    )
    result = runs(str(runs.pytester.path))
    assert result.ret == 1
    cases = runs.cases()
    assert cases["function/sort-10k"]["outcome"] == "new"
    assert cases["function/slow"]["outcome"] == "slow"
    runs(str(runs.pytester.path), "--baseline=record")
    assert "function/sort-10k" in (runs.pytester.path / "baselines" / "host" / "own.json").read_text()
    runs(str(runs.pytester.path), "-o", "perf_session_spread=0.9")
    assert runs.cases()["function/sort-10k"]["baseline_ns"] > 0


def test_what_is_no_time_fails_its_test(runs: HostRuns) -> None:
    """Parts of a nanosecond are rounded; text, NaN and less than nothing are reported, and the run can be read."""
    runs.pytester.makepyfile(
        """
        import pytest

        def test_parts(perf):
            perf.check("function/parts", [5.4, 6.6, 7.0])

        @pytest.mark.parametrize("wrong", [float("nan"), -1, "5", True, None])
        def test_wrong(perf, wrong):
            perf.check("function/wrong", [wrong, 6, 7])
        """
    )
    result = runs(str(runs.pytester.path))
    result.assert_outcomes(failed=5)
    result.stdout.fnmatch_lines(["function/wrong: samples_ns has nan, expected times in ns of 0 or more"])
    (judgement,) = runs.file().judgements
    assert judgement.samples_ns == (5, 7, 7)


def test_an_engine_without_opencl_is_told_before_anything_runs(runs: HostRuns) -> None:
    """--backend=opencl with a build that lacks it says how to get one, where there is a device for it."""
    result = runs("--backend=opencl")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: --backend=opencl: neither * holds libggml-opencl.so; run 'make perf-opencl'*"])
    assert [type(each).__name__ for each in runs.device.plans] == ["DevicesPlan"]


@pytest.mark.usefixtures("without_engines")
def test_another_engine_is_compared(runs: HostRuns) -> None:
    """A patched build says nothing of its engine; another released version is compared, too, and says both."""
    runs("--baseline=record", "-k", "test_phase")
    engine = dict(runs.device.payload["engine"])
    for version in ("llama 0.5.0-dev, ggml 0.25.3 f00", "llama 0.6.0, ggml 0.26.0 f00"):
        runs.device.payload = {**runs.device.payload, "engine": {**engine, "engine_version": version}}
        runs("-k", "test_phase")
        assert runs.outcomes() == {"pass"}
    told = "; engine llama 0.5.0-dev, ggml 0.25.3 -> llama 0.6.0, ggml 0.26.0"
    assert all(case["reason"].endswith(told) for case in runs.cases().values())


def test_a_broken_baseline_stops_the_run_before_anything_is_measured(runs: HostRuns) -> None:
    path = runs.pytester.path / "baselines" / "host" / "kernels.json"
    path.parent.mkdir(parents=True)
    path.write_text('{"schema": 99, "entries": []}')
    result = runs()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: *kernels.json: *schema is 99, expected 2*"])
    assert runs.device.plans == []


def test_a_baseline_that_cannot_be_written_fails_the_run(runs: HostRuns, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("perfsuite.records.whole_file._opened", refuse)
    result = runs("--baseline=record", "-k", "test_phase")
    assert result.ret == 1
    result.stdout.fnmatch_lines(["perfsuite: error: *cannot be written (Permission denied)"])


def test_xdist_is_refused(runs: HostRuns) -> None:
    result = runs.pytester.runpytest_inprocess("--device=host", "-n", "1")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: --device measures one thing at a time*"])

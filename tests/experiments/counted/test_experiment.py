"""Runs that count: what is judged by the committed counts, and what they add to times."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from perfsuite.errors import NativeBuildError
from perfsuite.expectation.llama_workload import LlamaWorkload
from perfsuite.experiments.counted import experiment
from perfsuite.experiments.counted.experiment import expected_counts
from perfsuite.records.counts import METRICS, CountedWork, CountRow, counts_path, read_counts
from tests.catalogue_workloads import catalogue_workload
from tests.counted_work import WORK
from tests.fake_device import HostRuns
from tests.synthetic_counts import WORKLOADS, made_of_terms, made_ratios

#: Of a size that no ratio was fitted to.
OTHER = catalogue_workload("smollm2-360m-l3-q8_0", "p20-g3")


@pytest.mark.parametrize("workload", [WORKLOADS[0], OTHER], ids=["known", "held-out"])
def test_what_a_formula_says_is_no_finding(workload: LlamaWorkload) -> None:
    found = expected_counts(made_of_terms(workload), workload, made_ratios())
    assert found
    assert [each.case_id for each in found.values() if each.is_finding] == []


def test_twice_the_work_is_a_finding() -> None:
    """It alone is one; all of its metrics are."""
    found = expected_counts(made_of_terms(OTHER, result_output=2), OTHER, made_ratios())
    findings = {case_id: each for case_id, each in found.items() if each.is_finding}
    prefix = f"counted/{OTHER.prefix}"
    assert findings.keys() == {
        f"{prefix}/{phase}/result_output/{metric}"
        for phase in ("prefill", "decode")
        for metric in ("instructions", "bytes_read", "bytes_written")
    }
    assert all(each.ratio == pytest.approx(2.0, rel=0.01) for each in findings.values())
    told = findings[f"{prefix}/decode/result_output/instructions"].told
    assert "instructions a FLOP, expected " in told


def test_nothing_is_expected_without_a_ratio_of_the_build_and_the_operator() -> None:
    """Ratios are those of a compiler and a processor; another llama.cpp is what is judged."""
    counted = made_of_terms(OTHER)
    assert expected_counts(replace(counted, compiler="gcc 12"), OTHER, made_ratios()) == {}
    assert expected_counts(replace(counted, processor="x86-64-v4"), OTHER, made_ratios()) == {}
    assert expected_counts(replace(counted, llama="a checkout"), OTHER, made_ratios())
    workload = catalogue_workload("smollm2-135m-l2-q4_0", "p16-g4")
    found = expected_counts(made_of_terms(workload), workload, made_ratios())
    roles = {case_id.split("/")[-2] for case_id in found}
    assert "attn_norm" in roles
    assert "Qcur" not in roles


def test_a_planted_change_of_the_committed_counts_is_found() -> None:
    """The standard run's: what stands out today, and a product that does a tenth more."""
    counted = read_counts(Path("baselines/counted/x86-64-v3/smollm2-135m-l4-q8_0-p16-g4.json"))
    workload = catalogue_workload("smollm2-135m-l4-q8_0", "p16-g4")
    planted = tuple(
        replace(row, instructions=row.instructions * 11 // 10) if row.name == "decode/ffn_up" else row
        for row in counted.rows
    )
    findings = [
        [each.case_id.split("/", 3)[3] for each in expected_counts(now, workload).values() if each.is_finding]
        for now in (counted, replace(counted, rows=planted))
    ]
    known = ["prefill/result_norm/instructions", "decode/result_norm/instructions"]
    assert findings == [known, [known[0], "decode/ffn_up/instructions", known[1]]]


USUAL = ("-o", "perf_session_spread=0.01")

PREFIX = "counted/smollm2-135m-l4-q8_0/p16-g4"
GATE = "prefill/ffn_gate"

Count = Callable[..., None]


def counted(workload: LlamaWorkload, **gate: int) -> CountedWork:
    row = dict.fromkeys(METRICS, 1000)
    return replace(
        WORK,
        model=workload.weights.name,
        scenario=workload.scenario.name,
        rows=(
            CountRow(phase="prefill", role="", **dict.fromkeys(METRICS, 10**9)),
            CountRow(phase="prefill", role="ffn_gate", **{**row, **gate}),
            CountRow(phase="prefill", role="ffn_up", **row),
        ),
    )


@pytest.fixture
def count(monkeypatch: pytest.MonkeyPatch) -> Count:
    """Let runs count so much; by the name of a llama.cpp where one is given."""

    def let(by_llama: dict[str | None, dict[str, int]] | None = None, **gate: int) -> None:
        found = by_llama or {}
        monkeypatch.setattr(
            experiment,
            "count_workload",
            lambda workload, llama, *_: counted(workload, **found.get(llama, gate)),
        )

    let()
    return let


def test_counts_alone_are_judged_by_what_was_committed(runs: HostRuns, count: Count) -> None:
    """The same work passes; one instruction more fails its case and no other. No time is measured."""
    model = "smollm2-135m-l4-q8_0"
    ffn = ("-k", "ffn")
    assert runs("--device=counted", "--baseline=record", *ffn, model=model).ret == 0
    path = counts_path(runs.pytester.path / "baselines", "x86-64-v3", f"{model}/p16-g4")
    assert path.exists()
    result = runs("--device=counted", *ffn, model=model)
    assert result.ret == 0
    assert {case["outcome"] for case in runs.cases().values() if GATE in case["id"]} == {"pass"}
    result.stdout.fnmatch_lines(["*counts do not see stalls*"])

    count(instructions=1001)
    assert runs("--device=counted", *ffn, model=model).ret == 1
    failed = {name: case["reason"] for name, case in runs.cases().items() if case["outcome"] == "regressed"}
    assert failed == {f"{PREFIX}/{GATE}/instructions": "1,001 instructions, 1,000 before (+0.100%)"}
    assert runs.device.plans == []


def test_each_processor_has_its_own_counts(runs: HostRuns, count: Count, monkeypatch: pytest.MonkeyPatch) -> None:
    """Arm's are counted as Arm's, and neither judged by x86-64's nor written over them."""
    model, asked = "smollm2-135m-l4-q8_0", list[str]()

    def counted_for(workload: LlamaWorkload, _: str | None, processor: str, *__: object) -> CountedWork:
        asked.append(processor)
        return replace(counted(workload), processor=processor)

    monkeypatch.setattr(experiment, "count_workload", counted_for)
    narrow = ("-k", "ffn_gate and prefill")
    assert runs("--device=counted", "--baseline=record", *narrow, model=model).ret == 0
    assert runs("--device=counted-arm", *narrow, model=model).ret == 0
    assert runs.outcomes() == {"new"}
    assert runs("--device=counted-arm", "--baseline=record", *narrow, model=model).ret == 0
    assert asked == ["x86-64-v3", "armv8.2-a+dotprod", "armv8.2-a+dotprod"]
    kept = {path.parent.name for path in (runs.pytester.path / "baselines" / "counted").glob("*/*.json")}
    assert kept == set(asked)


def test_what_cannot_be_counted_is_an_error_of_the_run(runs: HostRuns, monkeypatch: pytest.MonkeyPatch) -> None:

    def fail(*_: object) -> None:
        raise NativeBuildError("valgrind_3.24.0-3_amd64.deb: cannot be downloaded")

    monkeypatch.setattr(experiment, "count_workload", fail)
    result = runs("--device=counted")
    assert result.ret != 0
    assert runs.outcomes() == {"invalid"}
    result.stdout.fnmatch_lines(["*valgrind_3.24.0-3_amd64.deb: cannot be downloaded*"])


def test_counts_of_another_model_are_no_baseline(runs: HostRuns, count: Count, monkeypatch: pytest.MonkeyPatch) -> None:
    runs("--device=counted", "--baseline=record", "-k", "ffn_gate")
    monkeypatch.setattr(
        experiment,
        "count_workload",
        lambda workload, llama, *_: replace(counted(workload), compiler="zig 9"),
    )
    result = runs("--device=counted", "-k", "ffn_gate")
    assert result.ret != 0
    result.stdout.fnmatch_lines(["*counted/x86-64-v3/*.json: compiler is zig 9, and was zig 0.17.1*"])


@pytest.mark.usefixtures("without_engines")
def test_counts_beside_times(runs: HostRuns, count: Count) -> None:
    runs("--perf-counts", "--baseline=record", "-k", "ffn_gate or ffn_up")
    runs.device.slowdown["ffn_gate"] = 2.0
    runs("--perf-counts", "-k", "ffn_gate or ffn_up")
    reasons = {name.partition("/siso/")[2]: case["reason"] for name, case in runs.cases("operator").items()}
    assert reasons[GATE].endswith("the same work, slower: memory, placement or clock")
    assert "work" not in reasons["prefill/ffn_up"]


def test_pairs_count_both_sides(runs: HostRuns, count: Count) -> None:
    count({"new": {"instructions": 1100}, "old": {"instructions": 1000}})
    sides = ("--perf-counts=new", "--perf-counts-old=old", "--against-args=threads=1")
    runs(*sides, "-k", "ffn_gate")
    cases = runs.cases("counted")
    assert {name.rpartition("/")[2]: case["outcome"] for name, case in cases.items() if GATE in name} == {
        **dict.fromkeys(METRICS, "pass"),
        "instructions": "regressed",
    }


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--device=counted", "--threads=2"), "--threads: counted counts one model on one thread*"),
        (("--perf-counts", "--against-args=threads=1"), "--perf-counts: *name the other by --perf-counts-old"),
    ],
)
def test_what_cannot_be_counted_together(runs: HostRuns, arguments: tuple[str, ...], message: str) -> None:
    result = runs(*arguments)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"*{message}"])

"""``run.json``, as docs/run-format.md describes it."""

from __future__ import annotations

import json
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfsuite.errors import MeasurementError, PerfsuiteError
from perfsuite.expectation.ceilings import Bandwidth, Ceilings
from perfsuite.records.attribution import NO_ATTRIBUTION, Attribution, Carrier, PhaseAttribution, UniformShift
from perfsuite.records.observation import plain_observation
from perfsuite.records.outcome import Judgement, Outcome
from perfsuite.records.run_json import SCHEMA
from perfsuite.records.run_origin import NO_ORIGIN, BoardName, Commit, RunOrigin
from perfsuite.report.exports.openmetrics import openmetrics_text
from perfsuite.report.run_file import RunFile, plain_run, read_run_file, run_path, timed, tokens_per_s, write_run
from perfsuite.testing.run_files import HOSTILE_NAMES, synthetic_observation, synthetic_run
from perfsuite.workload.prompts import prompts_scenario

from ..json_places import places, with_value
from ..synthetic_judgements import PASSED, case

MANY = prompts_scenario((5, 70, 9), 8).name


@pytest.mark.parametrize(
    ("case_id", "rate"),
    [
        ("phase/a-q8_0/siso/prefill", 64 / 0.005),
        ("phase/a-q8_0/p100-g4-d7/prefill", 100 / 0.005),
        ("phase/a-q8_0/siso/embed", 64 / 0.005),
        (f"phase/a-q8_0/{MANY}/prefill", None),
        (f"phase/a-q8_0/{MANY}/decode", 1 / 0.005),
        ("phase/a-q8_0/siso/sampling", None),
        ("operator/a-q8_0/siso/decode/ffn_up", None),
        ("kernel/mul/siso/prefill", None),
    ],
)
def test_the_scenario_says_of_how_many_tokens_a_time_is(case_id: str, rate: float | None) -> None:
    """A prompt has its tokens, a decode step one; what has no one number of tokens has no speed."""
    assert tokens_per_s(case(case_id)) == rate


def test_a_time_has_its_speed_beside_it() -> None:
    """Of a phase with tokens both are reported, of others the time alone; what was not measured has neither."""
    assert tokens_per_s(replace(PASSED, measured_ns=None)) is tokens_per_s(replace(PASSED, measured_ns=0)) is None
    assert timed(PASSED, 34_800_000) == "34.8 ms (28.7 tokens/s)"
    assert timed(case("phase/a/b/copy"), 34_800_000) == "34.8 ms"
    assert timed(PASSED, None) == "-"
    text = openmetrics_text([replace(synthetic_run(), judgements=(PASSED, case("phase/a/b/copy")))])
    found = [line for line in text.splitlines() if line.startswith("perfsuite_case_tokens_per_second{")]
    assert len(found) == 1
    assert found[0].endswith("} 200.0")


#: A run that says something under every key.
FULL_RUN = replace(
    synthetic_run(n_cases=60, names=HOSTILE_NAMES),
    is_injected=True,
    is_interrupted=True,
    joules_per_token={"prefill": None, "decode": 0.82},
    device_notes=("a note",),
)

#: What runs had not from the beginning, and what they are read as without it.
_LATER = {
    "run_id": "",
    "arguments": (),
    "selection": (),
    "environment": {},
    "commit": None,
    "board": None,
    "device_notes": (),
    "sentinels_ns": {},
    "covariates": {},
    "joules_per_token": {},
    "injected": False,
    "interrupted": False,
    "against": None,
    "uniform_shift": None,
    "attribution": (),
}

_TIMES_NS = st.integers(min_value=0, max_value=2**62)
_RATIOS = st.just(0.0) | st.floats(1e-6, 1e12)
_WORDS = st.text(max_size=30)

_JUDGEMENTS = st.builds(
    Judgement,
    case_id=_WORDS,
    kind=_WORDS,
    samples_ns=st.lists(_TIMES_NS, max_size=4).map(tuple),
    measured_ns=st.none() | _TIMES_NS,
    floor_ns=st.none() | _TIMES_NS,
    expected_ns=st.none() | _TIMES_NS,
    limit_ns=st.none() | _TIMES_NS,
    baseline_ns=st.none() | _TIMES_NS,
    change_ratio=st.none() | _RATIOS,
    outcome=st.sampled_from(Outcome),
    reason=_WORDS,
    lower_ns=st.none() | _TIMES_NS,
    upper_ns=st.none() | _TIMES_NS,
    baseline_samples_ns=st.lists(_TIMES_NS, max_size=4).map(tuple),
    lower_ratio=st.none() | _RATIOS,
    upper_ratio=st.none() | _RATIOS,
    n_pairs=st.none() | st.integers(0, 99),
    n_more_pairs=st.none() | st.integers(0, 99),
    margin_ratio=st.none() | _RATIOS,
    resolution_ratio=st.none() | _RATIOS,
    step_share_ratio=st.none() | _RATIOS,
    smallest_effect_ratio=st.none() | _RATIOS,
)

_ORIGINS = st.builds(
    RunOrigin,
    run_id=_WORDS,
    arguments=st.lists(_WORDS, max_size=3).map(tuple),
    selection=st.lists(_WORDS, max_size=3).map(tuple),
    environment=st.dictionaries(_WORDS, _WORDS, max_size=2),
    commit=st.none() | st.builds(Commit, sha=_WORDS, is_dirty=st.booleans(), branch=st.none() | _WORDS),
    board=st.none() | st.builds(BoardName, identity=_WORDS, hostname=_WORDS, is_linked=st.booleans()),
)


def _read_back(run: RunFile, folder: Path) -> RunFile:
    return read_run_file(write_run(run, folder))


def _rewritten(folder: Path, plain: Any) -> Path:
    (folder / "run.json").write_text(json.dumps(plain), "utf-8")
    return folder


@given(
    judgements=st.lists(_JUDGEMENTS, max_size=3, unique_by=lambda each: each.case_id),
    origin=_ORIGINS,
    is_injected=st.booleans(),
    is_interrupted=st.booleans(),
    against=st.none() | _WORDS,
    shift=st.none() | st.builds(UniformShift, ratio=_RATIOS, n_cases=st.integers(0, 99)),
)
def test_what_is_written_is_read_again(
    tmp_path_factory: pytest.TempPathFactory,
    judgements: list[Judgement],
    origin: RunOrigin,
    is_injected: bool,
    is_interrupted: bool,
    against: str | None,
    shift: UniformShift | None,
) -> None:
    """Whatever a run holds, reading gives the very record that was written."""
    run = replace(
        FULL_RUN,
        judgements=tuple(judgements),
        origin=origin,
        is_injected=is_injected,
        is_interrupted=is_interrupted,
        against=against,
        attribution=replace(FULL_RUN.attribution, uniform_shift=shift),
    )
    assert _read_back(run, tmp_path_factory.mktemp("run")) == run


def test_no_field_is_forgotten(tmp_path: Path) -> None:
    """A run that says something in every field is read back whole."""
    run = replace(FULL_RUN, attribution=replace(FULL_RUN.attribution, uniform_shift=UniformShift(ratio=1.1, n_cases=9)))
    empty = RunFile(
        suite_version="",
        started_at="",
        device="",
        workload="",
        subjects={},
        fingerprints={},
        ceilings=None,
        durations_s={},
        operator_share_ratio={},
        n_discarded_replicates={},
        peak_rss_bytes=None,
        judgements=(),
    )
    assert [field.name for field in fields(RunFile) if getattr(run, field.name) == getattr(empty, field.name)] == []
    assert _read_back(run, tmp_path) == run
    assert _read_back(empty, tmp_path) == empty


def test_a_run_is_named_by_its_folder_or_its_file(tmp_path: Path) -> None:
    """Both read the same."""
    path = write_run(FULL_RUN, tmp_path)
    assert run_path(tmp_path) == run_path(path) == path
    assert read_run_file(tmp_path) == read_run_file(path)
    plain = {key: value for key, value in plain_run(FULL_RUN).items() if key not in _LATER}
    read = read_run_file(_rewritten(tmp_path, plain))
    assert (read.origin, read.attribution) == (NO_ORIGIN, NO_ATTRIBUTION)


@pytest.mark.parametrize("key", _LATER)
def test_runs_of_older_versions_are_read(tmp_path: Path, key: str) -> None:
    """What a version did not write yet is as in a run that has none of it."""
    plain = plain_run(FULL_RUN)
    del plain[key]
    read = read_run_file(_rewritten(tmp_path, plain))
    again = plain_run(read)[key]
    assert (tuple(again) if isinstance(again, list) else again) == _LATER[key]
    assert read.judgements == FULL_RUN.judgements


@pytest.mark.parametrize(
    ("content", "line"),
    [
        ("", r"run\.json: is not JSON \("),
        ("{", r"run\.json: is not JSON \("),
        ("[" * 100_000, r"run\.json: is not JSON \("),
        ("[]", r"run\.json: is a list, expected an object"),
        ("{}", r"run\.json: schema is missing, expected 1"),
        ('{"schema": 2, "cases": []}', r"run\.json: schema is 2, expected 1"),
        ('{"schema": 1}', r"run\.json: cases is missing; run again"),
        ('{"schema": 1, "cases": []}', r"run\.json: lacks the field 'ceilings'; run again"),
    ],
)
def test_what_is_no_run_is_one_line(tmp_path: Path, content: str, line: str) -> None:
    """The file is named, what is wrong with it, and what to do."""
    (tmp_path / "run.json").write_text(content)
    with pytest.raises(PerfsuiteError, match=line) as raised:
        read_run_file(tmp_path)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("field", "value", "told"),
    [
        ("measured_ns", "12", "'12', expected a whole number from 0 to below 2**63, or null"),
        ("measured_ns", True, "True, expected a whole number"),
        ("measured_ns", -1, "-1, expected a whole number"),
        ("measured_ns", 2**63, "9223372036854775808, expected a whole number"),
        ("limit_ns", 1.0, "1.0, expected a whole number"),
        ("samples_ns", None, "null, expected a list"),
        ("change_ratio", 5e-324, "5e-324, expected 0 or a number from 1e-12"),
        ("upper_ratio", 10**400, "expected a finite number, or null"),
        ("outcome", "fine", "'fine', expected one of "),
        ("kind", None, "null, expected text"),
    ],
)
def test_a_case_of_wrong_types_is_named(tmp_path: Path, field: str, value: object, told: str) -> None:
    """The line has the path, the case, the field, what it holds and what it may."""
    case = FULL_RUN.judgements[7].case_id
    with pytest.raises(PerfsuiteError) as raised:
        read_run_file(_rewritten(tmp_path, with_value(plain_run(FULL_RUN), ("cases", 7, field), value)))
    way, _, rest = str(raised.value).partition(f"cases[{case!r}].{field} is ")
    assert way == f"{tmp_path / 'run.json'}: "
    assert told in rest


@pytest.mark.parametrize(
    ("place", "value", "told"),
    [
        (("cases", 0, "samples_ns"), ["a"], ".samples_ns[0] is 'a', expected a whole number"),
        (("duration_s",), {"cpu": "1"}, "run.json: duration_s['cpu'] is '1', expected a finite number of 0 or more"),
        (("started_at",), None, "run.json: started_at is null, expected text"),
        (("injected",), "no", "run.json: injected is 'no', expected true or false"),
        (("commit",), {"sha": 1}, "run.json: commit.sha is 1, expected text; run again"),
        (("cases", 0, "measured_ns"), float("inf"), "run.json: is not JSON (Infinity is not a number of JSON)"),
        (("cases", 0, "change_ratio"), float("nan"), "run.json: is not JSON (NaN is not a number of JSON)"),
    ],
)
def test_a_value_of_another_type_is_named(tmp_path: Path, place: tuple[Any, ...], value: object, told: str) -> None:
    """What no reader could count with is refused before anything is made of it."""
    with pytest.raises(PerfsuiteError) as raised:
        read_run_file(_rewritten(tmp_path, with_value(plain_run(FULL_RUN), place, value)))
    assert told in str(raised.value)


def test_doubles_and_files_that_are_not_there_are_one_line(tmp_path: Path) -> None:
    """A table by case would lose one of two; the path is named, with what was expected."""
    with pytest.raises(PerfsuiteError, match=r"run\.json: cannot be read \(No such file or directory\); name the"):
        read_run_file(tmp_path)
    (tmp_path / "runs").touch()
    with pytest.raises(MeasurementError, match=r"runs/run\.json: cannot be written \("):
        write_run(RUN, tmp_path / "runs")
    double = replace(FULL_RUN, judgements=(*FULL_RUN.judgements[:3], FULL_RUN.judgements[1]))
    with pytest.raises(PerfsuiteError, match=r"run\.json: cases\[.*\] is there twice; run again"):
        read_run_file(write_run(double, tmp_path))


@pytest.mark.parametrize("wrong", [None, 7, "word", [], {}, [None]], ids=repr)
def test_a_wrong_value_is_never_a_traceback(tmp_path: Path, wrong: object) -> None:
    """Whatever is in the place of a field, the file is read or refused in one line that names it."""
    plain = plain_run(replace(FULL_RUN, judgements=FULL_RUN.judgements[:1]))
    told = []
    for place in places(plain, of_lists=1):
        _rewritten(tmp_path, with_value(plain, place, wrong))
        try:
            read_run_file(tmp_path)
        except PerfsuiteError as error:
            told.append(str(error))
    assert told
    assert all("run.json: " in line and "\n" not in line for line in told)


JUDGEMENT = Judgement(
    case_id="phase/a-q8_0/siso/decode",
    kind="phase",
    samples_ns=(5, 6, 7),
    measured_ns=6,
    floor_ns=1,
    expected_ns=4,
    limit_ns=40,
    baseline_ns=5,
    change_ratio=1.2,
    outcome=Outcome.REGRESSED,
    reason="µ",
)

RUN = RunFile(
    suite_version="1",
    started_at="2025-01-01T00:00:00Z",
    device="host",
    workload="a-q8_0/siso",
    subjects={"llama": "llama 1"},
    fingerprints={"llama": {"soc": "A"}},
    ceilings=None,
    durations_s={"probes": 1.5, "llama": 2.25},
    operator_share_ratio={"decode": 0.99},
    n_discarded_replicates={"llama": 1},
    peak_rss_bytes=None,
    judgements=(JUDGEMENT,),
)


def test_a_case_has_the_fields_of_the_format() -> None:
    """Every figure is under its name in the format, a forecast's bounds apart from those of the change."""
    (case,) = plain_run(RUN)["cases"]
    assert case == {
        "id": "phase/a-q8_0/siso/decode",
        "kind": "phase",
        "samples_ns": [5, 6, 7],
        "measured_ns": 6,
        "tokens_per_s": 1e9 / 6,
        "floor_ns": 1,
        "expected_ns": 4,
        "expected_lower_ns": None,
        "expected_upper_ns": None,
        "limit_ns": 40,
        "baseline_ns": 5,
        "change_ratio": 1.2,
        "lower_ratio": None,
        "upper_ratio": None,
        "margin_ratio": None,
        "resolution_ratio": None,
        "step_share_ratio": None,
        "baseline_samples_ns": [],
        "n_pairs": None,
        "n_more_pairs": None,
        "smallest_effect_ratio": None,
        "outcome": "regressed",
        "reason": "µ",
    }
    bare = replace(JUDGEMENT, samples_ns=(), measured_ns=None, baseline_ns=None, change_ratio=None)
    (case,) = plain_run(replace(RUN, judgements=(bare,)))["cases"]
    assert case["measured_ns"] is case["baseline_ns"] is case["change_ratio"] is None
    (case,) = plain_run(replace(RUN, judgements=(replace(JUDGEMENT, lower_ns=3, upper_ns=6),)))["cases"]
    assert (case["expected_lower_ns"], case["expected_ns"], case["expected_upper_ns"]) == (3, 4, 6)
    assert case["lower_ratio"] is case["upper_ratio"] is None


def test_what_explains_a_run_is_told() -> None:
    """Sentinels, covariates, energy, durations, carriers and the origin are beside the samples."""
    plain = plain_run(
        replace(
            RUN,
            sentinels_ns={"llama": {"memory": (1, 2)}},
            covariates={"llama": {"load_average": 0.5, "cpu_mhz": None}},
            is_injected=True,
        )
    )
    assert plain["sentinels_ns"] == {"llama": {"memory": [1, 2]}}
    assert plain["covariates"] == {"llama": {"load_average": 0.5, "cpu_mhz": None}}
    assert plain["injected"] is True
    assert plain_run(RUN)["injected"] is False
    energy = {"prefill": None, "decode": 0.82}
    assert plain_run(replace(RUN, joules_per_token=energy))["joules_per_token"] == energy
    assert plain_run(RUN)["joules_per_token"] == {}
    assert plain_run(replace(RUN, is_interrupted=True))["interrupted"] is True
    assert plain_run(RUN)["interrupted"] is False
    assert plain_run(RUN)["duration_s"] == {"total": 3.75, "probes": 1.5, "llama": 2.25}
    carrier = Carrier(case_id="operator/a/b/decode/x", role="x", lost_ns=3, share_ratio=0.75, is_significant=True)
    phase = PhaseAttribution(case_id="phase/a/b/decode", lost_ns=4, carriers=(carrier,), unexplained_ns=1)
    found = Attribution(phases=(phase,), uniform_shift=UniformShift(ratio=1.1, n_cases=9))
    plain = plain_run(replace(RUN, attribution=found))
    assert plain["uniform_shift"] == {"ratio": 1.1, "n_cases": 9}
    (told,) = plain["attribution"]
    assert told["carriers"] == [
        {"id": "operator/a/b/decode/x", "role": "x", "lost_ns": 3, "share_ratio": 0.75, "is_significant": True}
    ]
    assert (told["id"], told["lost_ns"], told["unexplained_ns"]) == ("phase/a/b/decode", 4, 1)
    assert plain_run(RUN)["uniform_shift"] is None
    assert plain_run(RUN)["attribution"] == []
    commit = Commit(sha="0c1e570", is_dirty=True, branch="main")
    origin = RunOrigin(
        run_id="1", arguments=("--device=host",), selection=("-k", "x y"), environment={"A": "b"}, commit=commit
    )
    plain = plain_run(replace(RUN, origin=origin))
    assert plain["selection"] == ["-k", "x y"]
    assert (plain["run_id"], plain["arguments"], plain["environment"]) == ("1", ["--device=host"], {"A": "b"})
    assert plain["commit"] == {"sha": "0c1e570", "is_dirty": True, "branch": "main"}
    assert plain_run(RUN)["commit"] is None


def test_what_is_written_is_json_of_this_schema(tmp_path: Path) -> None:
    """The file is in the run's folder and reads as what was run."""
    bandwidth = Bandwidth(working_set_bytes=1, read_bytes_per_s=1.0, copy_bytes_per_s=1.0, triad_bytes_per_s=1.0)
    ceilings = Ceilings(
        n_threads=2,
        bandwidths=(bandwidth,),
        fp32_flops_per_s=1.0,
        int8_flops_per_s=1.0,
        f16_flops_per_s=None,
        dispatch_ns=1,
    )
    run = replace(RUN, ceilings=ceilings)
    path = write_run(run, tmp_path / "runs" / "1")
    assert path == tmp_path / "runs" / "1" / "run.json"
    plain = json.loads(path.read_text("utf-8"))
    assert plain == plain_run(run)
    assert plain["schema"] == SCHEMA
    assert Ceilings.from_plain(plain["ceilings"]) == ceilings


def test_every_field_is_described() -> None:
    """The document of the format names every field of a run, of a case, and of what a run saw."""
    described = (Path(__file__).parents[2] / "docs" / "run-format.md").read_text("utf-8")
    plain = plain_run(RUN)
    seen = plain_observation(synthetic_observation(synthetic_run(n_cases=60)))
    of_seen = [name for rows in seen.values() if isinstance(rows, list) for name in rows[0]]
    missing = [name for name in (*plain, *plain["cases"][0], *seen, *of_seen) if f"`{name}`" not in described]
    assert missing == []

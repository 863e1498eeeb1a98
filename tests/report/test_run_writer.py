"""``run.json``, as docs/run-format.md describes it."""

from __future__ import annotations

import json
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest

from perfsuite.errors import PerfsuiteError
from perfsuite.records.events import KeptOutputs
from perfsuite.records.observation import plain_observation
from perfsuite.records.outcome import NO_ATTRIBUTION, UniformShift
from perfsuite.records.run_file import RunFile, read_run_file
from perfsuite.records.run_origin import NO_ORIGIN
from perfsuite.report.run_writer import plain_run, tokens_per_s, write_run
from perfsuite.testing.run_files import HOSTILE_NAMES, synthetic_observation, synthetic_run
from perfsuite.workload.prompts import prompts_scenario

from ..json_places import with_value
from ..synthetic_judgements import case

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


#: A run that says something under every key.
FULL_RUN = replace(
    synthetic_run(n_cases=60, names=HOSTILE_NAMES),
    is_injected=True,
    is_interrupted=True,
    joules_per_token={"prefill": None, "decode": 0.82},
    device_notes=("a note",),
    outputs={"llama": KeptOutputs(prompts="a\nb", outputs=b"\0\xff", chosen_tokens=b"")},
)

EMPTY = RunFile(
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
#: What runs had not from the beginning: without it they are read as one that knows nothing of it.
_LATER = (
    *("run_id", "arguments", "selection", "environment", "commit", "board", "device_notes", "outputs", "sentinels_ns"),
    *("covariates", "joules_per_token", "injected", "interrupted", "against", "uniform_shift", "attribution"),
)


def _read_back(run: RunFile, folder: Path) -> RunFile:
    return read_run_file(write_run(run, folder))


def _rewritten(folder: Path, plain: Any) -> Path:
    (folder / "run.json").write_text(json.dumps(plain), "utf-8")
    return folder


def test_no_field_is_forgotten(tmp_path: Path) -> None:
    run = replace(FULL_RUN, attribution=replace(FULL_RUN.attribution, uniform_shift=UniformShift(ratio=1.1, n_cases=9)))
    assert [field.name for field in fields(RunFile) if getattr(run, field.name) == getattr(EMPTY, field.name)] == []
    assert _read_back(run, tmp_path) == run
    assert _read_back(EMPTY, tmp_path) == EMPTY


def test_a_run_without_its_origin_is_read(tmp_path: Path) -> None:
    plain = {key: value for key, value in plain_run(FULL_RUN).items() if key not in _LATER}
    read = read_run_file(_rewritten(tmp_path, plain))
    assert (read.origin, read.attribution) == (NO_ORIGIN, NO_ATTRIBUTION)


@pytest.mark.parametrize("key", _LATER)
def test_runs_of_older_versions_are_read(tmp_path: Path, key: str) -> None:
    plain = plain_run(FULL_RUN)
    del plain[key]
    read = read_run_file(_rewritten(tmp_path, plain))
    assert plain_run(read)[key] == plain_run(EMPTY)[key]
    assert read.judgements == FULL_RUN.judgements


@pytest.mark.parametrize(
    ("place", "value", "told"),
    [
        (("cases", 0, "samples_ns"), ["a"], ".samples_ns[0] is 'a', expected a whole number"),
        (("cases", 0, "measured_ns"), 2**63, "expected a whole number from 0 to below 2**63, or null"),
        (("cases", 0, "change_ratio"), 5e-324, "5e-324, expected 0 or a number from 1e-12"),
        (("cases", 0, "outcome"), "fine", "'fine', expected one of "),
        (("duration_s",), {"cpu": "1"}, "run.json: duration_s['cpu'] is '1', expected a finite number of 0 or more"),
        (("cases", 0, "measured_ns"), float("inf"), "run.json: is not JSON (Infinity is not a number of JSON)"),
    ],
)
def test_a_value_of_another_type_is_named(tmp_path: Path, place: tuple[Any, ...], value: object, told: str) -> None:
    """What no reader could count with is refused before anything is made of it."""
    with pytest.raises(PerfsuiteError) as raised:
        read_run_file(_rewritten(tmp_path, with_value(plain_run(FULL_RUN), place, value)))
    assert told in str(raised.value)


def test_a_case_that_is_there_twice_is_refused(tmp_path: Path) -> None:
    """A table by case would lose one of two."""
    double = replace(FULL_RUN, judgements=(*FULL_RUN.judgements[:3], FULL_RUN.judgements[1]))
    with pytest.raises(PerfsuiteError, match=r"run\.json: cases\[.*\] is there twice; run again"):
        read_run_file(write_run(double, tmp_path))


def test_every_field_is_described() -> None:
    """The document of the format names every field of a run, of a case, and of what a run saw."""
    described = (Path(__file__).parents[2] / "docs" / "run-format.md").read_text("utf-8")
    plain = plain_run(FULL_RUN)
    seen = plain_observation(synthetic_observation(synthetic_run(n_cases=60)))
    of_seen = [name for rows in seen.values() if isinstance(rows, list) for name in rows[0]]
    missing = [name for name in (*plain, *plain["cases"][0], *seen, *of_seen) if f"`{name}`" not in described]
    assert missing == []

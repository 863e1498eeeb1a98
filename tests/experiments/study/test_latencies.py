"""Where a study's latencies come from."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from perfsuite.errors import PerfsuiteError
from perfsuite.experiments.study.latencies import known_latencies
from perfsuite.experiments.study.plan import GivenLatency, StudyPlan, StudyRun
from perfsuite.experiments.study.plan_file import read_plan
from tests.command_streams import write_phase_run

STUDY_PLAN = Path(__file__).resolve().parents[3] / "docs" / "examples" / "study" / "plan.toml"
NAME = "smollm2-135m q8_0"
WORKLOAD = "smollm2-135m-q8_0/p100-g4"


def with_first(**changes: Any) -> StudyPlan:
    """Return the example with its first run changed, and no other."""
    plan = read_plan(STUDY_PLAN)
    run: StudyRun = replace(plan.runs[0], **changes)
    return replace(plan, runs=(run,))


def test_what_must_be_measured_is_not_known() -> None:
    """A plan without latencies has none."""
    assert known_latencies(read_plan(STUDY_PLAN), None) == {}


def test_a_given_latency_is_one_sample() -> None:
    """Its source says that it was given."""
    found = known_latencies(with_first(latency=GivenLatency(prefill_s_per_token=0.5, decode_s_per_token=2.0)), None)
    assert (found[NAME].prefill_samples_s, found[NAME].decode_samples_s) == ((0.5,), (2.0,))
    assert found[NAME].source == "given"


def test_a_stored_run_is_divided_by_its_prompt(tmp_path: Path) -> None:
    """The gather of the embeddings belongs to the prefill; a decode sample is one token already."""
    path = write_phase_run(
        tmp_path, WORKLOAD, prefill=[9 * 10**9, 19 * 10**9], embedding=[10**9, 10**9], decode=[5 * 10**8]
    )
    found = known_latencies(with_first(run_file=path), None)[NAME]
    assert (found.prefill_samples_s, found.decode_samples_s) == ((0.1, 0.2), (0.5,))
    assert found.source == str(path)


def test_a_stored_run_may_lack_the_embedding(tmp_path: Path) -> None:
    """The prefill then counts as it is."""
    path = write_phase_run(tmp_path, WORKLOAD, prefill=[10**10], decode=[10**9])
    assert known_latencies(with_first(run_file=path), None)[NAME].prefill_samples_s == (0.1,)


@pytest.mark.parametrize(
    ("scenario", "phases"), [("p100-g4", ["decode"]), ("p100-g4", ["prefill"]), ("p0-g4", ["prefill", "decode"])]
)
def test_a_run_without_both_phases_is_refused(scenario: str, phases: list[str], tmp_path: Path) -> None:
    """Neither a prompt alone nor a generation alone will do."""
    path = write_phase_run(tmp_path, f"smollm2-135m-q8_0/{scenario}", **{phase: [10**9] for phase in phases})
    with pytest.raises(PerfsuiteError, match=r"run\.json: has no valid prefill and decode"):
        known_latencies(with_first(run_file=path), None)


def test_a_runs_own_latency_goes_before_an_earlier_study(tmp_path: Path) -> None:
    """The earlier study counts where the plan has nothing; runs that it has and the plan lacks are left out."""
    latency = {"source": "measured", "prefill_samples_s": [1], "decode_samples_s": [3]}
    earlier = tmp_path / "x.json"
    earlier.write_text(json.dumps({"latencies": {NAME: latency, "other f16": latency}}))
    assert set(known_latencies(with_first(), earlier)) == {NAME}
    own = with_first(latency=GivenLatency(prefill_s_per_token=0.5, decode_s_per_token=2.0))
    assert known_latencies(own, earlier)[NAME].prefill_samples_s == (0.5,)


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"latencies": 3}', '{"latencies": {"a": {}}}'])
def test_another_file_is_no_study(content: str, tmp_path: Path) -> None:
    """It is told by its name."""
    path = tmp_path / "x.json"
    path.write_text(content)
    with pytest.raises(PerfsuiteError, match=r"x\.json: is no study"):
        known_latencies(with_first(), path)


@pytest.mark.parametrize("number", ["1" + "0" * 400, '"x"', "NaN", "1e999"])
def test_an_earlier_study_with_no_latency_is_refused(number: str, tmp_path: Path) -> None:
    """Numbers that no float holds, texts, NaN and infinities."""
    path = tmp_path / "x.json"
    path.write_text(
        f'{{"latencies": {{"a": {{"source": "m", "prefill_samples_s": [{number}], "decode_samples_s": [1]}}}}}}'
    )
    with pytest.raises(PerfsuiteError, match=r"x\.json: is no study|latency from m: samples are"):
        known_latencies(with_first(), path)


@pytest.mark.parametrize("content", ['{"latencies": {"a": {"source": "\\ud800"}}}', "[" * 100_000])
def test_an_earlier_study_that_cannot_be_written_again_is_refused(content: str, tmp_path: Path) -> None:
    """Half a surrogate pair, and what is nested too deeply."""
    path = tmp_path / "x.json"
    path.write_text(content.replace('{"source"', '{"prefill_samples_s": [1], "decode_samples_s": [1], "source"'))
    with pytest.raises(PerfsuiteError, match=r"x\.json: is no study"):
        known_latencies(with_first(), path)

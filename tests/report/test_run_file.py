"""``run.json``, as docs/run-format.md describes it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from perfsuite.errors import MeasurementError
from perfsuite.expectation.ceilings import Bandwidth, Ceilings
from perfsuite.records.attribution import Attribution, Carrier, PhaseAttribution, UniformShift
from perfsuite.records.judgement import Judgement
from perfsuite.records.observation_file import plain_observation
from perfsuite.records.outcome import Outcome
from perfsuite.records.run_json import SCHEMA
from perfsuite.records.run_origin import Commit, RunOrigin
from perfsuite.report.run_file import RunFile, plain_run, write_run
from perfsuite.testing.run_files import synthetic_observation, synthetic_run

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
    """Every figure of a judgement is under the name that the format gives it, None where there is none."""
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


def test_the_interval_of_a_forecast_stands_beside_it() -> None:
    """Its bounds are under names of their own, apart from those of the change."""
    (case,) = plain_run(replace(RUN, judgements=(replace(JUDGEMENT, lower_ns=3, upper_ns=6),)))["cases"]
    assert (case["expected_lower_ns"], case["expected_ns"], case["expected_upper_ns"]) == (3, 4, 6)
    assert case["lower_ratio"] is case["upper_ratio"] is None


def test_where_the_time_went_is_told_by_phase() -> None:
    """Each phase that changed has its carriers, and what everything has in common stands by itself."""
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


def test_what_explains_a_run_is_told_by_group() -> None:
    """Sentinels, covariates and whether something was slowed down on purpose stand beside the samples."""
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


def test_the_energy_of_a_token_is_told_by_phase() -> None:
    """A phase that was too short for the sensor has null; a device without a sensor has none."""
    energy = {"prefill": None, "decode": 0.82}
    assert plain_run(replace(RUN, joules_per_token=energy))["joules_per_token"] == energy
    assert plain_run(RUN)["joules_per_token"] == {}


def test_an_interrupted_run_says_so() -> None:
    """A run that came to its end says that it did."""
    assert plain_run(replace(RUN, is_interrupted=True))["interrupted"] is True
    assert plain_run(RUN)["interrupted"] is False


def test_the_origin_is_told_key_by_key() -> None:
    """Where the run comes from stands beside what it found; a run of no working tree has no commit."""
    commit = Commit(sha="0c1e570", is_dirty=True, branch="main")
    origin = RunOrigin(
        run_id="1", arguments=("--device=host",), selection=("-k", "x y"), environment={"A": "b"}, commit=commit
    )
    plain = plain_run(replace(RUN, origin=origin))
    assert plain["selection"] == ["-k", "x y"]
    assert (plain["run_id"], plain["arguments"], plain["environment"]) == ("1", ["--device=host"], {"A": "b"})
    assert plain["commit"] == {"sha": "0c1e570", "is_dirty": True, "branch": "main"}
    assert plain_run(RUN)["commit"] is None


def test_the_parts_of_a_run_and_their_sum_are_told() -> None:
    """The duration of each part stands beside that of the whole."""
    assert plain_run(RUN)["duration_s"] == {"total": 3.75, "probes": 1.5, "llama": 2.25}


def test_what_is_written_is_json_of_this_schema(tmp_path: Path) -> None:
    """The file lies in the run's folder and reads as what was run."""
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


def test_a_folder_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    """A file in the folder's place is told with the path."""
    (tmp_path / "runs").touch()
    with pytest.raises(MeasurementError, match=r"runs/run\.json: cannot be written \("):
        write_run(RUN, tmp_path / "runs")

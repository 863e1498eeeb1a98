"""``perfsuite study``."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from perfsuite.cli import main
from perfsuite.errors import PerfsuiteError
from perfsuite.experiments.study.command import known_latencies
from perfsuite.experiments.study.command_tables import study_chart
from perfsuite.experiments.study.harness_scores import read_scores
from perfsuite.experiments.study.joined import TokenKind, join
from perfsuite.experiments.study.plan_file import GivenLatency, StudyPlan, StudyRun, read_plan
from perfsuite.experiments.study.token_latency import TokenLatency
from tests.command_streams import Refused, Streams, write_phase_run

EXAMPLES = Path(__file__).resolve().parents[3] / "docs" / "examples" / "study"
SUITE, PLAN = EXAMPLES / "made-up-suite.toml", EXAMPLES / "plan.toml"


def test_a_study_is_drawn() -> None:
    """A panel for either token of each task; all runs are points, originals apart, and the knee is ringed."""
    plan = read_plan(SUITE)
    found = join(plan, read_scores(plan), known_latencies(plan, None))
    chart = study_chart(found)
    assert [panel.title for panel in chart.panels] == [
        f"{task}, {kind} tokens" for task in ("arc_easy", "arc_challenge") for kind in ("input", "output")
    ]
    panel = chart.panels[1]
    assert (chart.n_columns, panel.x_axis.caption) == (2, "time of an output token (s)")
    groups = [(group.label, group.kind, len(group.x)) for group in panel.groups]
    assert groups == [("Pythia", "original", 4), ("Pythia", "quantised", 4)]
    frontier = found.frontier("arc_easy", TokenKind.OUTPUT)
    (line,), knee, ringed = panel.lines, frontier.knee, panel.ringed
    assert line.x == tuple(each.latency_s for each in frontier.members)
    assert knee is not None
    assert ringed is not None
    assert (ringed.x, ringed.y) == ((knee.latency_s,), (knee.accuracy,))


NAME = "smollm2-135m q8_0"
WORKLOAD = "smollm2-135m-q8_0/p100-g4"


def with_first(**changes: Any) -> StudyPlan:
    plan = read_plan(PLAN)
    run: StudyRun = replace(plan.runs[0], **changes)
    return replace(plan, runs=(run,))


def test_a_given_latency_is_one_sample() -> None:
    """Its source says that it was given; what must be measured is not known."""
    found = known_latencies(with_first(latency=GivenLatency(prefill_s_per_token=0.5, decode_s_per_token=2.0)), None)
    assert found == {NAME: TokenLatency(prefill_samples_s=(0.5,), decode_samples_s=(2.0,), source="given")}
    assert known_latencies(read_plan(PLAN), None) == {}


def test_a_stored_run_is_divided_by_its_prompt(tmp_path: Path) -> None:
    path = write_phase_run(
        tmp_path, WORKLOAD, prefill=[9 * 10**9, 19 * 10**9], embedding=[10**9, 10**9], decode=[5 * 10**8]
    )
    found = known_latencies(with_first(run_file=path), None)[NAME]
    assert found == TokenLatency(prefill_samples_s=(0.1, 0.2), decode_samples_s=(0.5,), source=str(path))
    path = write_phase_run(tmp_path, WORKLOAD, prefill=[10**10], decode=[10**9])
    assert known_latencies(with_first(run_file=path), None)[NAME].prefill_samples_s == (0.1,)


@pytest.mark.parametrize(
    ("scenario", "phases"), [("p100-g4", ["decode"]), ("p100-g4", ["prefill"]), ("p0-g4", ["prefill", "decode"])]
)
def test_a_run_without_both_phases_is_refused(scenario: str, phases: list[str], tmp_path: Path) -> None:
    path = write_phase_run(tmp_path, f"smollm2-135m-q8_0/{scenario}", **{phase: [10**9] for phase in phases})
    with pytest.raises(PerfsuiteError, match=r"run\.json: has no valid prefill and decode"):
        known_latencies(with_first(run_file=path), None)


def test_a_runs_own_latency_goes_before_an_earlier_study(tmp_path: Path) -> None:
    latency = {"source": "measured", "prefill_samples_s": [1], "decode_samples_s": [3]}
    earlier = tmp_path / "x.json"
    earlier.write_text(json.dumps({"latencies": {NAME: latency, "other f16": latency}}))
    assert set(known_latencies(with_first(), earlier)) == {NAME}
    own = with_first(latency=GivenLatency(prefill_s_per_token=0.5, decode_s_per_token=2.0))
    assert known_latencies(own, earlier)[NAME].prefill_samples_s == (0.5,)


@pytest.mark.parametrize(
    ("source", "samples"),
    [('"m"', None), ('"m"', "1e999"), ('"\\ud800"', "1")],
    ids=["no latency", "no number", "half a surrogate pair"],
)
def test_another_file_is_no_study(source: str, samples: str | None, tmp_path: Path) -> None:
    latency = f'"source": {source}, "prefill_samples_s": [{samples}], "decode_samples_s": [1]' if samples else ""
    path = tmp_path / "x.json"
    path.write_text(f'{{"latencies": {{"a": {{{latency}}}}}}}')
    with pytest.raises(PerfsuiteError, match=r"x\.json: is not a study|latency from m: samples are"):
        known_latencies(with_first(), path)


def study_file(path: Path, *names: str) -> Path:
    latency = {"source": "measured", "prefill_samples_s": [1e-3, 2e-3, 4e-3], "decode_samples_s": [1e-2]}
    path.write_text(json.dumps({"latencies": dict.fromkeys(names, latency)}))
    return path


def test_people_read_tables_frontiers_and_scores(capsys: Streams) -> None:
    """The example without measuring: a table a task, the knee, H_Q of each quantisation and its mean."""
    assert main(["study", str(SUITE)]) == 0
    out = capsys.readouterr().out
    assert "arc_easy, accuracy normalised to made-up reference" in out
    assert "input, output (knee)" in out
    assert "frontier by output tokens: pythia-70m q4_0, " in out
    assert "; knee: pythia-410m q4_0" in out
    assert "arc_challenge: mean H_Q 1." in out


def test_programs_read_the_same(tmp_path: Path, capsys: Streams) -> None:
    """Points, frontiers with their knees, and the three parts of each H_Q; what is no number is null."""
    shutil.copytree(EXAMPLES, tmp_path / "study")
    for path in (tmp_path / "study" / "accuracies").glob("*.json"):
        plain = json.loads(path.read_text())
        for metrics in plain["results"].values():
            metrics["acc_norm_stderr,none"] = float("nan")
        path.write_text(json.dumps(plain))
    assert main(["study", str(tmp_path / "study" / SUITE.name), "--json"]) == 0
    out = capsys.readouterr().out
    plain = json.loads(out)
    assert "NaN" not in out
    assert next(iter(plain)) == "schema"
    assert {point["accuracy_stderr"] for point in plain["points"]} == {None}
    assert (len(plain["points"]), len(plain["latencies"]), len(plain["quantizations"])) == (16, 8, 8)
    point = plain["points"][0]
    assert (point["run"], point["suite"], point["metric"]) == ("pythia-70m f16", "Pythia", "acc_norm,none")
    assert point["normalised_accuracy"] == pytest.approx((0.37 - 0.25) / (0.80 - 0.25))
    row = plain["quantizations"][0]
    parts = [row["m_accuracy"], row["m_prefill"], row["m_decode"]]
    assert parts == pytest.approx([(0.355 - 0.25) / (0.37 - 0.25), 2.1 / 1.9, 2.6 / 1.5])
    assert row["h_q"] == pytest.approx(3 / sum(1 / part for part in parts))
    assert {(each["task"], each["tokens"]) for each in plain["frontiers"]} == {
        (task, tokens) for task in ("arc_easy", "arc_challenge") for tokens in ("input", "output")
    }
    assert plain["engine"] is None


def test_a_picture_and_a_file_are_written(tmp_path: Path, capsys: Streams) -> None:
    picture, output = tmp_path / "x.svg", tmp_path / "x.json"
    assert main(["study", str(SUITE), "--plot", str(picture), "--output", str(output)]) == 0
    told = "the knee of the frontier is pythia-410m q4_0, 7.90 ms an output token at 0.500 of the reference's accuracy"
    assert f"{picture}: arc_easy: {told}\n" in capsys.readouterr().out
    assert "pythia-1.4b f16" in picture.read_text()
    assert main(["study", str(SUITE), "--from", str(output), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == json.loads(output.read_text())


def test_a_dry_run_tells_what_would_be_measured(tmp_path: Path, capsys: Streams) -> None:
    earlier = study_file(tmp_path / "x.json", NAME)
    assert main(["study", str(PLAN), "--dry-run", "--from", str(earlier)]) == 0
    assert "3 workloads to be measured" in capsys.readouterr().out


def test_what_is_missing_is_measured(tmp_path: Path, capsys: Streams, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def measure(plan: object, points: tuple[object, ...], *_: object) -> tuple[dict[str, TokenLatency], str]:
        asked.extend(point.sweep for point in points)  # type: ignore[attr-defined]
        latency = TokenLatency(prefill_samples_s=(1e-3,), decode_samples_s=(5e-3,), source="measured")
        return {"smollm2-135m q4_0": latency}, "llama.cpp b9"

    monkeypatch.setattr("perfsuite.experiments.study.command.measure_latencies", measure)
    earlier = study_file(tmp_path / "x.json", NAME)
    assert main(["study", str(PLAN), "--from", str(earlier), "--json"]) == 0
    plain = json.loads(capsys.readouterr().out)
    assert asked == ["smollm2-135m q4_0"] * 3
    assert plain["latencies"][NAME]["prefill_s_per_token"] == 2e-3  # the median of what is known
    assert (plain["engine"], plain["quantizations"][0]["m_decode"]) == ("llama.cpp b9", 2.0)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('metric = "acc_norm"', 'metric = "f1"', "task 'arc_easy': metric 'f1' is not there"),
        ("q8_0.json", "none.json", "smollm2-135m-none.json: cannot be read"),
        ('quantization = "q4_0"', 'quantization = "q9"', "q9"),
        ('quantization = "q4_0"', 'quantization = "q4_0"\nrun_file = "lengths.txt"', "lengths.txt"),
    ],
)
def test_mistakes_are_told_before_anything_is_measured(
    old: str, new: str, message: str, tmp_path: Path, refused: Refused
) -> None:
    shutil.copytree(EXAMPLES, tmp_path / "study")
    path = tmp_path / "study" / "plan.toml"
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))
    assert message in refused(["study", str(path)])


@pytest.mark.parametrize("arguments", [[], ["--dry-run"]])
def test_threads_must_have_processors(
    arguments: list[str], tmp_path: Path, refused: Refused, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where something is measured; latencies that are all given need none."""
    monkeypatch.setattr("perfsuite.experiments.study.command.usable_threads", lambda: 4)
    shutil.copytree(EXAMPLES, tmp_path / "study")
    for name in (PLAN.name, SUITE.name):
        path = tmp_path / "study" / name
        path.write_text("threads = 5\n" + path.read_text())
    message = refused(["study", str(tmp_path / "study" / PLAN.name), *arguments])
    assert "plan.toml: threads is 5, expected 1 to 4, the processors that may be used" in message
    assert main(["study", str(tmp_path / "study" / SUITE.name), *arguments]) == 0


def test_a_dry_run_checks_the_device_and_the_lengths(tmp_path: Path, refused: Refused) -> None:
    """The device although no latency is measured; a prompt that is longer than what the model was trained for."""
    shutil.copytree(EXAMPLES, tmp_path / "study")
    suite, plan = tmp_path / "study" / SUITE.name, tmp_path / "study" / PLAN.name
    suite.write_text('device = "nodev"\n' + suite.read_text())
    assert "made-up-suite.toml: device is 'nodev', expected one of " in refused(["study", str(suite), "--dry-run"])
    (tmp_path / "study" / "lengths.txt").write_text("9999999\n")
    message = refused(["study", str(plan), "--dry-run"])
    assert "smollm2-135m q8_0: a prompt of 9999999 tokens and 16 after it, expected " in message

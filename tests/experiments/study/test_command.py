"""``perfsuite study``."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from perfsuite.cli import main
from perfsuite.experiments.study.token_latency import TokenLatency
from tests.command_streams import Refused, Streams

EXAMPLES = Path(__file__).resolve().parents[3] / "docs" / "examples" / "study"
SUITE, PLAN = EXAMPLES / "made-up-suite.toml", EXAMPLES / "plan.toml"
RUNS = ("smollm2-135m q8_0", "smollm2-135m q4_0")


def study_file(path: Path, *names: str) -> Path:
    """Write the latencies of runs as an earlier study does."""
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


def test_programs_read_the_same(capsys: Streams) -> None:
    """Points, frontiers with their knees, and the three parts of each H_Q."""
    assert main(["study", str(SUITE), "--json"]) == 0
    plain = json.loads(capsys.readouterr().out)
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
    """The picture tells the knee; what is written can be read as an earlier study."""
    picture, output = tmp_path / "x.svg", tmp_path / "x.json"
    assert main(["study", str(SUITE), "--plot", str(picture), "--output", str(output)]) == 0
    told = "the knee of the frontier is pythia-410m q4_0, 7.90 ms an output token at 0.500 of the reference's accuracy"
    assert f"{picture}: arc_easy: {told}\n" in capsys.readouterr().out
    for word in ("frontier", "knee", "pythia-1.4b f16", "time of an output token (s)", "arc_challenge, input tokens"):
        assert word in picture.read_text()
    assert main(["study", str(SUITE), "--from", str(output), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == json.loads(output.read_text())


def test_a_dry_run_tells_what_would_be_measured(tmp_path: Path, capsys: Streams) -> None:
    """Two runs over three lengths; nothing where an earlier study has them."""
    assert main(["study", str(PLAN), "--dry-run"]) == 0
    out = capsys.readouterr().out
    assert "6 workloads to be measured, 3 fresh processes each" in out
    assert out.count("to be measured") == 3
    earlier = study_file(tmp_path / "x.json", RUNS[0])
    assert main(["study", str(PLAN), "--dry-run", "--from", str(earlier)]) == 0
    assert "3 workloads to be measured" in capsys.readouterr().out


def test_latencies_of_an_earlier_study_are_not_measured_again(tmp_path: Path, capsys: Streams) -> None:
    """The median of its samples counts."""
    earlier = study_file(tmp_path / "x.json", *RUNS)
    assert main(["study", str(PLAN), "--from", str(earlier), "--json"]) == 0
    plain = json.loads(capsys.readouterr().out)
    assert {each["prefill_s_per_token"] for each in plain["points"]} == {2e-3}


def test_what_is_missing_is_measured(tmp_path: Path, capsys: Streams, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the runs without a latency; the engine that measured them is told."""
    asked: list[str] = []

    def measure(plan: object, points: tuple[object, ...], *_: object) -> tuple[dict[str, TokenLatency], str]:
        asked.extend(point.sweep for point in points)  # type: ignore[attr-defined]
        latency = TokenLatency(prefill_samples_s=(1e-3,), decode_samples_s=(5e-3,), source="measured")
        return {RUNS[1]: latency}, "llama.cpp b9"

    monkeypatch.setattr("perfsuite.experiments.study.command.measure_latencies", measure)
    earlier = study_file(tmp_path / "x.json", RUNS[0])
    assert main(["study", str(PLAN), "--from", str(earlier), "--json"]) == 0
    plain = json.loads(capsys.readouterr().out)
    assert asked == [RUNS[1]] * 3
    assert (plain["engine"], plain["quantizations"][0]["m_decode"]) == ("llama.cpp b9", 2.0)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            'metric = "acc_norm"',
            'metric = "f1"',
            "task 'arc_easy': metric 'f1' is not there; metrics are acc_norm,none",
        ),
        ('name = "arc_easy"', 'name = "piqa"', "task 'piqa' is not there; tasks are arc_challenge, arc_easy"),
        ("q8_0.json", "none.json", "smollm2-135m-none.json: cannot be read"),
        ('quantization = "q4_0"', 'quantization = "q9"', "q9"),
        ('quantization = "q4_0"', 'quantization = "q4_0"\nrun_file = "lengths.txt"', "lengths.txt"),
    ],
)
def test_mistakes_are_told_before_anything_is_measured(
    old: str, new: str, message: str, tmp_path: Path, refused: Refused
) -> None:
    """Scores, weights and stored runs are looked up first."""
    shutil.copytree(EXAMPLES, tmp_path / "study")
    path = tmp_path / "study" / "plan.toml"
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))
    assert message in refused(["study", str(path)])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["none.toml"], "none.toml: cannot be read"),
        ([str(SUITE), "--plot", "x.pdf"], "x.pdf: suffix is '.pdf'"),
        ([str(SUITE), "--from", "none.json"], "none.json: cannot be read"),
        ([str(SUITE), "--from", str(SUITE)], "made-up-suite.toml: is no study"),
    ],
)
def test_a_mistake_is_one_line(arguments: list[str], message: str, refused: Refused) -> None:
    """Files that are missing or of another kind."""
    assert message in refused(["study", *arguments])


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


def test_json_is_strict_and_begins_with_its_schema(tmp_path: Path, capsys: Streams) -> None:
    """A standard error of NaN is null."""
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
    assert next(iter(plain.items())) == ("schema", 1)
    assert {point["accuracy_stderr"] for point in plain["points"]} == {None}

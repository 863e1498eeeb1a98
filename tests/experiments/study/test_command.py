"""``perfsuite study``."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from perfsuite.cli import main
from perfsuite.device.profile import find_profile
from perfsuite.errors import PerfsuiteError
from perfsuite.experiments.scenario_bench import Bench
from perfsuite.experiments.study.command import known_latencies, measure_latencies, study_points
from perfsuite.experiments.study.plan_file import StudyPlan, StudyRun, TokenLatency, read_plan
from perfsuite.measure.board.local_board import LocalBoard
from perfsuite.measure.engine import find_engine
from perfsuite.measure.plan import LlamaPlan
from perfsuite.records.events import EngineRecord, Phase, Span
from perfsuite.testing.workers import replace_workers
from tests.command_streams import Refused, Streams, write_phase_run
from tests.synthetic_plans import QUIET


def answer(plan: LlamaPlan, **_: Any) -> dict[str, Any]:
    """Answer as a process that takes 1 s a token of a prompt, and 1 s an output token in Q4_0 and 10 s in F16."""
    decode_s = 1 if "q4_0" in plan.gguf_path else 10
    lengths = [(Phase.PREFILL, plan.n_prompt), *[(Phase.DECODE, decode_s)] * plan.n_gen]
    spans = tuple(
        Span(phase=phase, repetition=0, token=0, n_tokens=1, start_ns=0, end_ns=seconds * 10**9)
        for phase, seconds in lengths
    )
    record = EngineRecord(engine_version="b9", spans=spans, graphs=(), n_dropped=0)
    return {"engine": record.to_plain(), "contention": QUIET}


def test_a_prompt_must_fit_what_the_model_was_trained_for(plan: StudyPlan, tmp_path: Path) -> None:
    n_ctx = study_points(plan, models_dir=tmp_path, n_threads=2)[0].workload.weights.architecture.n_ctx_train
    fits = replace(plan, prompt_lengths=(n_ctx - plan.n_gen,))
    assert len(study_points(fits, models_dir=tmp_path, n_threads=2)) == len(plan.runs)
    for changed in (replace(fits, n_gen=plan.n_gen + 1), replace(plan, prompt_lengths=(9, 9_999_999))):
        with pytest.raises(PerfsuiteError, match=f"small f16: a prompt of .* expected {n_ctx} in all at most"):
            study_points(changed, models_dir=tmp_path, n_threads=2)


def test_latencies_are_by_run(plan: StudyPlan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An input token takes a second over prompts of 8, 16 and 8; an output token what its quantisation takes."""
    replace_workers(monkeypatch, answer)
    monkeypatch.setattr(
        "perfsuite.measure.board.local_board.materialize", lambda weights, cache_dir: cache_dir / weights.name
    )
    bench = Bench(
        engine=find_engine(), profile=find_profile("host"), board=LocalBoard(cache_dir=tmp_path), n_processes=3
    )
    points = study_points(plan, models_dir=tmp_path, n_threads=2)
    latencies, engine = measure_latencies(plan, points, bench, lambda text: None)
    assert engine == "b9"
    assert list(latencies) == [run.name for run in plan.runs]
    for name, latency in latencies.items():
        assert latency.prefill_samples_s == (1.0,) * 3
        assert latency.decode_s_per_token == (1.0 if name.endswith("q4_0") else 10.0)
        assert latency.source == "measured"


EXAMPLES = Path(__file__).resolve().parents[3] / "docs" / "examples" / "study"
SUITE, PLAN = EXAMPLES / "made-up-suite.toml", EXAMPLES / "plan.toml"


NAME = "smollm2-135m q8_0"
WORKLOAD = "smollm2-135m-q8_0/p100-g4"


def with_first(**changes: Any) -> StudyPlan:
    plan = read_plan(PLAN)
    run: StudyRun = replace(plan.runs[0], **changes)
    return replace(plan, runs=(run,))


GIVEN = TokenLatency(prefill_samples_s=(0.5,), decode_samples_s=(2.0,), source="given")


def test_a_given_latency_is_known_and_what_must_be_measured_is_not() -> None:
    assert known_latencies(with_first(latency=GIVEN), None) == {NAME: GIVEN}
    assert known_latencies(read_plan(PLAN), None) == {}


def test_a_stored_run_is_divided_by_its_prompt(tmp_path: Path) -> None:
    path = write_phase_run(
        tmp_path, WORKLOAD, prefill=[9 * 10**9, 19 * 10**9], embedding=[10**9, 10**9], decode=[5 * 10**8]
    )
    found = known_latencies(with_first(run_file=path), None)[NAME]
    assert found == TokenLatency(prefill_samples_s=(0.1, 0.2), decode_samples_s=(0.5,), source=str(path))
    path = write_phase_run(tmp_path, WORKLOAD, prefill=[10**10], decode=[10**9])
    assert known_latencies(with_first(run_file=path), None)[NAME].prefill_samples_s == (0.1,)


def test_a_runs_own_latency_goes_before_an_earlier_study(tmp_path: Path) -> None:
    latency = {"source": "measured", "prefill_samples_s": [1], "decode_samples_s": [3]}
    earlier = tmp_path / "x.json"
    earlier.write_text(json.dumps({"latencies": {NAME: latency, "other f16": latency}}))
    assert set(known_latencies(with_first(), earlier)) == {NAME}
    assert known_latencies(with_first(latency=GIVEN), earlier)[NAME] == GIVEN


def study_file(path: Path, *names: str) -> Path:
    latency = {"source": "measured", "prefill_samples_s": [1e-3, 2e-3, 4e-3], "decode_samples_s": [1e-2]}
    path.write_text(json.dumps({"latencies": dict.fromkeys(names, latency)}))
    return path


def test_programs_read_the_same(tmp_path: Path, capsys: Streams) -> None:
    """Points, and the three parts of each H_Q; what is no number is null."""
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
    assert {point["accuracy_stderr"] for point in plain["points"]} == {None}
    assert (len(plain["points"]), len(plain["latencies"]), len(plain["quantizations"])) == (16, 8, 8)
    point = plain["points"][0]
    assert (point["run"], point["suite"], point["metric"]) == ("pythia-70m f16", "Pythia", "acc_norm,none")
    assert point["normalised_accuracy"] == pytest.approx((0.37 - 0.25) / (0.80 - 0.25))
    row = plain["quantizations"][0]
    parts = [row["m_accuracy"], row["m_prefill"], row["m_decode"]]
    assert parts == pytest.approx([(0.355 - 0.25) / (0.37 - 0.25), 2.1 / 1.9, 2.6 / 1.5])
    assert row["h_q"] == pytest.approx(3 / sum(1 / part for part in parts))


def test_a_picture_and_a_file_are_written(tmp_path: Path, capsys: Streams) -> None:
    picture, output = tmp_path / "x.svg", tmp_path / "x.json"
    assert main(["study", str(SUITE), "--plot", str(picture), "--output", str(output)]) == 0
    out = capsys.readouterr().out
    told = "the knee of the frontier is pythia-410m q4_0, 7.90 ms an output token at 0.500 of the reference's accuracy"
    assert f"{picture}: arc_easy: {told}\n" in out
    assert "arc_challenge: mean H_Q 1." in out
    assert "pythia-1.4b f16" in picture.read_text()
    assert main(["study", str(SUITE), "--from", str(output), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == json.loads(output.read_text())


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

"""Measuring the runs of a study."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from perfsuite.device.profile import find_profile
from perfsuite.errors import PerfsuiteError
from perfsuite.experiments.scenario_bench import Bench
from perfsuite.experiments.study.measurement import measure_latencies, study_points
from perfsuite.experiments.study.plan_file import StudyPlan
from perfsuite.measure.board.local_board import LocalBoard
from perfsuite.measure.engine import find_engine
from perfsuite.measure.plan import LlamaPlan
from perfsuite.records.events import EngineRecord, Phase, Span
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
    monkeypatch.setattr("perfsuite.measure.launch.run_worker", answer)
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

"""Forecast ratios beside measured ones, with the workers replaced."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from perfsuite.device.profile import find_profile
from perfsuite.errors import MeasurementError
from perfsuite.expectation.llama_workload import LlamaWorkload
from perfsuite.expectation.speculation import Drafting, Speculation
from perfsuite.expectation.timing.engine_times import EngineTimes
from perfsuite.expectation.timing.operator_shape import OperatorShape
from perfsuite.experiments.variants.measurement import (
    VariantBench,
    by_calibration,
    latencies_of,
    measure_variants,
    measured_latencies,
    variant_points,
)
from perfsuite.measure.board.local_board import LocalBoard
from perfsuite.measure.plan import TurnsPlan
from perfsuite.records.events import EngineRecord, Phase, Span
from tests.catalogue_workloads import catalogue_weights
from tests.synthetic_calibration import calibration, composition

WEIGHTS, DRAFT = catalogue_weights("smollm2-135m-l2-q8_0"), catalogue_weights("smollm2-135m-l1-q8_0")
POINTS = tuple(variant_points(WEIGHTS, WEIGHTS, ("parallel",)))[:2]
PLAIN = POINTS[0].plain
DRAFTED = PLAIN.with_draft(Drafting(weights=WEIGHTS, speculation=Speculation(n_draft=1, acceptance_ratio=0.5)))


def record_of(durations_ns: Mapping[Phase, tuple[int, ...]]) -> EngineRecord:
    spans = tuple(
        Span(phase=phase, repetition=0, token=0, n_tokens=1, start_ns=0, end_ns=each)
        for phase, found in durations_ns.items()
        for each in found
    )
    return EngineRecord(engine_version="1", spans=spans, graphs=(), n_dropped=0)


def test_a_token_of_a_round_has_its_part_of_draft_and_check() -> None:
    phases = {Phase.PREFILL: 70.0, Phase.DRAFT_PREFILL: 30.0, Phase.DECODE: 20.0, Phase.DRAFT: 10.0}
    assert latencies_of(phases, DRAFTED) == {"ttft": 100.0, "tpot": 20.0}
    assert latencies_of({Phase.PREFILL: 70.0, Phase.DECODE: 20.0}, PLAIN) == {"ttft": 70.0, "tpot": 20.0}


def test_what_disturbs_a_repetition_is_left_out() -> None:
    record = record_of({Phase.PREFILL: (100, 900), Phase.DECODE: (10, 12, 50), Phase.LOAD: (5,)})
    assert measured_latencies(record, PLAIN) == {"ttft": 100.0, "tpot": 11.0}


def test_a_calibration_forecasts_what_a_draft_adds() -> None:
    shapes = {OperatorShape(op="MUL_MAT", type="q8_0", n_inner=576, n_outer=1536): 30}
    forecast = by_calibration(
        EngineTimes(calibration(*(composition(shapes, phase=phase) for phase in ("prefill", "decode") for _ in "12")))
    )
    plain, drafted, parallel = (forecast(each) for each in (PLAIN, DRAFTED, POINTS[1].workload))
    assert drafted["ttft"] > 1.9 * plain["ttft"]
    assert drafted["tpot"] * 1.5 > 2.0 * plain["tpot"]
    assert parallel["tpot"] > plain["tpot"]


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> VariantBench:
    name = "perfsuite.measure.board.local_board.materialize"
    monkeypatch.setattr(name, lambda weights, cache_dir: cache_dir / f"{weights.name}.gguf")
    profile = find_profile("host", folders=())
    board = LocalBoard(cache_dir=tmp_path)
    return VariantBench(board=board, profile=profile, n_threads=2, models_dir=tmp_path, n_pairs=3)


def taken(board: LocalBoard, plans: tuple[TurnsPlan, TurnsPlan], **_: Any) -> tuple[dict[str, Any], ...]:
    """Take turns in which a step of n sequences takes 10 n."""
    steps_ns = (10 * plan.llama.n_sequences for plan in plans)
    records = (record_of({Phase.PREFILL: (100,), Phase.DECODE: (step_ns,)}) for step_ns in steps_ns)
    return tuple({"engine": record.to_plain(), "contention": {}} for record in records)


def expected(workload: LlamaWorkload) -> Mapping[str, float]:
    return {"ttft": 100.0, "tpot": 5.0 * workload.n_sequences}


def test_a_point_is_measured_beside_its_plain_workload(bench: VariantBench, monkeypatch: pytest.MonkeyPatch) -> None:
    """The ratio is that of each pair, with an interval; times are those of the variant."""
    monkeypatch.setattr("perfsuite.measure.schedule.Rule.complaint", lambda rule, payload: None)
    monkeypatch.setattr(LocalBoard, "run_in_turns", taken)
    told: list[str] = []
    rows = measure_variants(POINTS, expected, bench, told.append)
    assert [(row.setting, row.latency, row.n_pairs) for row in rows] == [
        ("2 sequences", "tpot", 3),
        ("4 sequences", "tpot", 3),
    ]
    assert rows[1].measured_ratio == rows[1].forecast_ratio == pytest.approx(4.0)
    assert rows[1].lower_ratio == pytest.approx(4.0)
    assert (rows[1].measured_ns, rows[1].expected_ns) == (40.0, 20.0)
    assert len(told) == 2 * 3


def test_points_that_others_disturb_are_left_out(bench: VariantBench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("perfsuite.measure.schedule.Rule.complaint", lambda rule, payload: "too hot")
    monkeypatch.setattr("perfsuite.measure.schedule.lost_ratio", lambda contention: 0.0)
    monkeypatch.setattr("perfsuite.measure.schedule.Contention.from_plain", lambda plain: None)
    monkeypatch.setattr(LocalBoard, "run_in_turns", taken)
    told: list[str] = []
    with pytest.raises(MeasurementError, match="no variant has enough undisturbed pairs"):
        measure_variants(POINTS, expected, bench, told.append)
    assert told[-1] == "parallel 4 sequences: left out, 0 undisturbed pairs; too hot"

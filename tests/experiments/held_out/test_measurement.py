"""The forecast's errors on workloads that the calibration never ran, with the workers replaced."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from perfsuite.device.profile import find_profile
from perfsuite.expectation.timing.calibration_plan import reference_models, reference_weights
from perfsuite.expectation.timing.engine_times import EngineTimes
from perfsuite.expectation.timing.operator_shape import OperatorShape
from perfsuite.experiments.held_out.measurement import (
    HELD_OUT,
    N_GEN,
    N_PROCESSES,
    Anchor,
    HeldOutRow,
    anchor_of,
    measure_held_out,
    summarize,
)
from perfsuite.measure.board.local_board import LocalBoard
from perfsuite.measure.plan import LlamaPlan
from perfsuite.records.events import EngineRecord, Phase, Span
from perfsuite.workload.model_shape import shape_of
from perfsuite.workload.weights import resolve
from tests.catalogue_workloads import catalogue_workload
from tests.synthetic_calibration import calibration, composition

WORKLOADS = (("smollm2-135m-l2-q8_0", 64), ("qwen3-0.6b-l2-q4_0", 600))
PRODUCT = OperatorShape(op="MUL_MAT", type="q8_0", n_inner=576, n_outer=1536)

ROW = HeldOutRow(
    weights="a-q8_0", n_prompt=64, latency="tpot", expected_ns=110.0, lower_ns=90.0, upper_ns=130.0, measured_ns=100.0
)


class Machine:
    """Answers each process with spans of lengths that are set beforehand, and notes in which order it was asked."""

    def __init__(self) -> None:
        self.plans: list[LlamaPlan] = []
        #: Prefill and decodes of each process in turn, ns.
        self.times: list[tuple[int, tuple[int, ...]]] = [(1000, (100, 120, 110))]

    def run(self, _: object, plan: LlamaPlan, __: object) -> dict[str, Any]:
        prefill, decodes = self.times[len(self.plans) % len(self.times)]
        self.plans.append(plan)
        spans = [_span(Phase.PREFILL, prefill), *(_span(Phase.DECODE, each) for each in decodes), _span(Phase.COPY, 7)]
        record = EngineRecord(engine_version="1", spans=tuple(spans), graphs=(), n_dropped=0)
        return {"engine": record.to_plain()}


def _span(phase: Phase, duration_ns: int) -> Span:
    return Span(phase=phase, repetition=0, token=0, n_tokens=1, start_ns=5, end_ns=5 + duration_ns)


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    found = Machine()
    monkeypatch.setattr("perfsuite.experiments.held_out.measurement.run_undisturbed", found.run)
    monkeypatch.setattr(
        "perfsuite.measure.board.local_board.materialize",
        lambda weights, cache_dir: cache_dir / f"{weights.name}.gguf",
    )
    return found


Measured = Callable[..., tuple[HeldOutRow, ...]]


@pytest.fixture
def measured(machine: Machine, tmp_path: Path) -> Measured:
    composed = (composition({PRODUCT: 30}, phase=phase, rest_ns=300.0) for phase in ("prefill", "decode") for _ in "12")
    return partial(
        measure_held_out,
        EngineTimes(calibration(*composed)),
        board=LocalBoard(cache_dir=tmp_path),
        profile=find_profile("host"),
        n_threads=2,
        models_dir=tmp_path,
        progress=lambda text: None,
    )


def test_there_is_a_row_for_each_workload_and_latency(machine: Machine, measured: Measured) -> None:
    """TTFT is the evaluation of the prompt and TPOT that of a token, each in the median of processes and tokens."""
    machine.times = [(1000, (100, 120, 110)), (2000, (200, 190, 220))]
    rows = measured(WORKLOADS, anchor=None)
    assert [(row.weights, row.n_prompt, row.latency) for row in rows] == [
        (name, n_prompt, latency) for name, n_prompt in WORKLOADS for latency in ("ttft", "tpot")
    ]
    assert [row.measured_ns for row in rows] == [1500.0, 155.0] * 2
    assert [(plan.n_prompt, plan.n_gen) for plan in machine.plans] == [
        (n_prompt, N_GEN) for _, n_prompt in WORKLOADS for _ in range(N_PROCESSES)
    ]
    assert len({plan.layout_seed for plan in machine.plans}) == len(machine.plans)


def test_the_forecast_never_sees_the_measurement(machine: Machine, measured: Measured) -> None:
    first = measured(WORKLOADS, anchor=None)
    machine.times = [(10**9, (10**8,))]
    second = measured(WORKLOADS, anchor=None)
    assert [replace(row, measured_ns=0.0) for row in first] == [replace(row, measured_ns=0.0) for row in second]
    assert all(row.lower_ns < row.expected_ns < row.upper_ns for row in first)


def test_what_is_run_between_workloads_tells_the_drift(machine: Machine, measured: Measured) -> None:
    """It took 500 and 100 ns when the device was calibrated, and takes twice and 1.1 times that around each."""
    own = catalogue_workload("smollm2-135m-l3-q8_0", "p96-g12")
    anchor = Anchor(workload=own, calibrated_ns={Phase.PREFILL: 500.0, Phase.DECODE: 100.0})
    rows = measured(WORKLOADS, anchor=anchor)
    names = [Path(plan.gguf_path).name.partition("-q")[0] for plan in machine.plans]
    one, other = (name.rpartition("-")[0] for name, _ in WORKLOADS)
    assert names == ["smollm2-135m-l3", one, one, "smollm2-135m-l3", other, other, "smollm2-135m-l3"]
    assert [row.drift_ratio for row in rows] == pytest.approx([2.0, 1.1] * 2)
    for row in rows:
        assert 1.0 + row.error_without_drift_ratio == pytest.approx((1.0 + row.error_ratio) * row.drift_ratio)


@pytest.mark.parametrize(
    ("measured_ns", "error_ratio", "is_inside"),
    [
        *((100.0, 0.1, True), (220.0, -0.5, False), (55.0, 1.0, False)),
        *((89.9, None, False), (90.0, None, True), (130.0, None, True), (130.1, None, False)),
    ],
)
def test_an_error_is_the_forecast_over_the_measurement(
    measured_ns: float, error_ratio: float | None, is_inside: bool
) -> None:
    """Above 0 the forecast is too slow, below 0 too fast; the bounds of its interval are inside."""
    row = replace(ROW, measured_ns=measured_ns)
    assert row.is_inside is is_inside
    assert error_ratio is None or row.error_ratio == pytest.approx(error_ratio)


def test_a_summary_has_the_errors_of_a_latency() -> None:
    """Errors of +10 %, -50 % and +10 % are 23.3 % in the mean, a bias of -10 %, and -50 % at the worst."""
    rows = (ROW, replace(ROW, measured_ns=220.0), ROW)
    (found,) = summarize(rows)
    assert (found.latency, found.n_rows) == ("tpot", 3)
    assert found.mean_absolute_error_ratio == pytest.approx(0.7 / 3)
    assert found.bias_ratio == pytest.approx(-0.1)
    assert found.worst_error_ratio == pytest.approx(-0.5)
    assert found.inside_ratio == pytest.approx(2 / 3)
    first, second = summarize((ROW, replace(ROW, latency="ttft", measured_ns=220.0)))
    assert (first.latency, first.worst_error_ratio, first.inside_ratio) == ("ttft", pytest.approx(-0.5), 0.0)
    assert (second.latency, second.worst_error_ratio, second.inside_ratio) == ("tpot", pytest.approx(0.1), 1.0)
    assert summarize(()) == ()


def test_what_is_held_out_is_wide_enough_and_in_no_calibration() -> None:
    """30 pairs over 15 architectures and more, of every quantisation, from 32 to 1024 tokens, each once."""
    assert len(set(HELD_OUT)) == len(HELD_OUT) >= 30
    weights = [resolve(name, cache_dir=Path("/nowhere")) for name, _ in HELD_OUT]
    assert {each.quantization for each in weights} == {"q4_0", "q8_0", "f16", "q4_k_m", "q6_k"}
    assert len({each.gguf_architecture for each in weights}) >= 15
    assert (min(n for _, n in HELD_OUT), max(n for _, n in HELD_OUT)) == (32, 1024)
    assert any("moe" in name for name, _ in HELD_OUT)
    composed = {(shape_of(model).n_embd, shape_of(model).n_vocab) for model, _ in reference_models()}
    shapes = [resolve(name, cache_dir=Path("/nowhere")).shape for name, _ in HELD_OUT]
    assert not composed & {(shape.n_embd, shape.n_vocab) for shape in shapes}


def test_the_anchor_is_the_first_model_that_the_calibration_ran() -> None:
    """Its workload is that of the calibration, and each phase took its operators and the rest, in the median.

    A calibration of another version ran models that are not known any more, and has none.
    """
    name = reference_weights(cache_dir=Path("/nowhere"))[1].name
    composed = [
        replace(composition({PRODUCT: 3}, rest_ns=500.0, phase=phase), name=name) for phase in ("prefill", "decode")
    ]
    spoilt = replace(composed[1], shapes_ns=((100.0, 200.0, 900.0),), rest_ns=(1.0, 2.0, 3.0))
    anchor = anchor_of(calibration(composed[0], spoilt), models_dir=Path("/nowhere"))
    assert anchor is not None
    assert anchor.workload.weights.name == name
    assert anchor.calibrated_ns == {
        Phase.PREFILL: pytest.approx(composed[0].operators_ns[0] + 500.0),
        Phase.DECODE: pytest.approx(202.0),
    }
    assert anchor_of(calibration(composition({PRODUCT: 3})), models_dir=Path("/nowhere")) is None

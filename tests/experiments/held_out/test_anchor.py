"""What of a calibration is run again, to see how fast the device is now."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from perfsuite.expectation.timing.operator_shape import OperatorShape
from perfsuite.expectation.timing.reference_architectures import reference_weights
from perfsuite.experiments.held_out.anchor import anchor_of, phase_ns
from perfsuite.records.events import EngineRecord, Phase, Span
from tests.synthetic_calibration import calibration, composition

NOWHERE = Path("/nowhere")
PRODUCT = OperatorShape(op="MUL_MAT", type="q8_0", n_inner=576, n_outer=1536)


def test_it_is_the_first_model_that_the_calibration_ran() -> None:
    """Its workload is that of the calibration, and each phase took its operators and the rest, in the median."""
    name = reference_weights(cache_dir=NOWHERE)[1].name
    composed = [
        replace(composition({PRODUCT: 3}, rest_ns=500.0, phase=phase), name=name) for phase in ("prefill", "decode")
    ]
    spoilt = replace(composed[1], shapes_ns=((100.0, 200.0, 900.0),), rest_ns=(1.0, 2.0, 3.0))
    anchor = anchor_of(calibration(composed[0], spoilt), models_dir=NOWHERE)
    assert anchor is not None
    assert anchor.workload.weights.name == name
    assert anchor.calibrated_ns == {
        Phase.PREFILL: pytest.approx(composed[0].operators_ns[0] + 500.0),
        Phase.DECODE: pytest.approx(202.0),
    }


def test_a_calibration_of_other_models_has_none() -> None:
    """One of another version ran models that are not known any more."""
    assert anchor_of(calibration(composition({PRODUCT: 3})), models_dir=NOWHERE) is None


def test_a_phase_is_the_median_of_its_occurrences() -> None:
    lengths = ((Phase.DECODE, 10), (Phase.DECODE, 30), (Phase.PREFILL, 99), (Phase.DECODE, 20))
    spans = tuple(
        Span(phase=phase, repetition=0, token=0, n_tokens=1, start_ns=5, end_ns=5 + length) for phase, length in lengths
    )
    assert phase_ns(EngineRecord(engine_version="1", spans=spans, graphs=(), n_dropped=0), Phase.DECODE) == 20

"""What a calibration measured, to JSON and back."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from perfsuite.expectation.timing.calibration import Calibration, CalibrationPoint
from perfsuite.expectation.timing.operator_shape import OperatorShape

from ...synthetic_calibration import calibration, composition, token_phase

PRODUCT = OperatorShape(op="MUL_MAT", type="q4_k", n_inner=512, n_outer=256, n_tokens=8)
ATTENTION = OperatorShape(op="FLASH_ATTN_EXT", type="f16", n_inner=64, n_heads=8, n_kv_heads=4, n_past=99)

CALIBRATION = calibration(
    composition({PRODUCT: 20, ATTENTION: 10}, ratio=1.25, rest_ns=3000.0),
    points=[
        CalibrationPoint(shape=PRODUCT, rounds_ns=(1.5, 2.0, 1.0)),
        CalibrationPoint(shape=ATTENTION, rounds_ns=(7.0, 8.0, 9.0)),
    ],
    token_phases=[token_phase("copy", 1000, 50.0)],
)


def plain() -> dict[str, Any]:
    read: dict[str, Any] = json.loads(json.dumps(CALIBRATION.to_plain()))
    return read


def test_a_file_of_before_quick_ones_is_a_whole_one() -> None:
    """What earlier versions stored says nothing of being quick, and is read as it was meant."""
    read = plain()
    del read["is_quick"]
    assert Calibration.from_plain(read) == CALIBRATION
    assert Calibration.from_plain({**read, "is_quick": True}) == replace(CALIBRATION, is_quick=True)

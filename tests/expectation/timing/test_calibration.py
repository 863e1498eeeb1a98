"""What a calibration measured, to JSON and back."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from perfsuite.errors import MeasurementError
from perfsuite.expectation.timing.calibration import SCHEMA, Calibration, CalibrationPoint
from perfsuite.expectation.timing.operator_shape import OperatorShape

from ...json_places import with_value
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
    """Return the calibration as it comes out of a file."""
    read: dict[str, Any] = json.loads(json.dumps(CALIBRATION.to_plain()))
    return read


def test_a_calibration_comes_back_as_it_was() -> None:
    """Every field equals itself after its way through JSON."""
    assert Calibration.from_plain(plain()) == CALIBRATION


def test_a_file_of_before_quick_ones_is_a_whole_one() -> None:
    """What earlier versions stored says nothing of being quick, and is read as it was meant."""
    read = plain()
    del read["is_quick"]
    assert Calibration.from_plain(read) == CALIBRATION
    assert Calibration.from_plain({**read, "is_quick": True}) == replace(CALIBRATION, is_quick=True)


def test_operators_of_a_composition_are_counted_with_their_layers() -> None:
    """Each shape is there once, with how often it occurs; all operators of a process take what its shapes take."""
    found = replace(CALIBRATION.compositions[0], shapes_ns=((100.0, 110.0), (7.0, 9.0)), rest_ns=(1.0, 2.0))
    assert (len(found.shapes), found.n_operators, found.operators_ns) == (2, 30, (107.0, 119.0))


@pytest.mark.parametrize("value", [None, [], "text", 5, {}, {"schema": SCHEMA}, {"points": []}])
def test_what_is_no_calibration_is_refused(value: object) -> None:
    """Anything that JSON may hold and `to_plain` does not return says what to run."""
    with pytest.raises(MeasurementError, match=r"^calibration: .*; run 'perfsuite calibrate' again$"):
        Calibration.from_plain(value)


def test_another_schema_is_refused() -> None:
    """A calibration of an older suite is made again."""
    with pytest.raises(MeasurementError, match=rf"schema is {SCHEMA + 1}, expected {SCHEMA}; run 'perfsuite"):
        Calibration.from_plain({**plain(), "schema": SCHEMA + 1})


@pytest.mark.parametrize("key", sorted(set(plain()) - {"schema", "is_quick", "spread_bytes"}))
def test_a_field_too_few_or_too_many_is_refused(key: str) -> None:
    """A calibration that lacks a field, or has one more, is not of this schema."""
    fewer = {name: value for name, value in plain().items() if name != key}
    for fields in (fewer, {**plain(), f"{key}_ns": 5}):
        with pytest.raises(MeasurementError, match="run 'perfsuite calibrate' again"):
            Calibration.from_plain(fields)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("n_threads",), "many"),
        (("fingerprint",), 5),
        (("points",), 5),
        (("points", 0), "text"),
        (("points", 0, "rounds_ns"), []),
        (("points", 0, "rounds_ns"), "123"),
        (("points", 0, "rounds_ns"), [1.0, "long"]),
        (("points", 0, "rounds_ns"), [1.0, None]),
        (("points", 0, "rounds_ns"), [1.0, -1.0]),
        (("points", 0, "rounds_ns"), [0.0]),
        (("points", 0, "rounds_ns"), [float("nan")]),
        (("points", 0, "rounds_ns"), [float("inf")]),
        (("points", 0, "shape"), {"op": "ADD"}),
        (("points", 0, "shape", "n_inner"), 0),
        (("points", 0, "shape", "n_past"), -1),
        (("points", 0, "shape", "n_tokens"), "8"),
        (("compositions", 0, "counts"), [1]),
        (("compositions", 0, "counts"), [1, "x"]),
        (("compositions", 0, "shapes_ns"), 5),
        (("compositions", 0, "shapes_ns"), []),
        (("compositions", 0, "shapes_ns"), [[1.0] * 3]),
        (("compositions", 0, "shapes_ns"), [[1.0] * 3] * 3),
        (("compositions", 0, "shapes_ns"), [[1.0] * 3, [1.0] * 2]),
        (("compositions", 0, "shapes_ns"), [[1.0] * 2] * 2),
        (("compositions", 0, "shapes_ns", 1), []),
        (("compositions", 0, "shapes_ns", 1), [1.0, 0.0, 1.0]),
        (("compositions", 0, "shapes_ns", 1), 5.0),
        (("compositions", 0, "rest_ns"), [1.0]),
        (("compositions", 0, "rest_ns"), [-1.0]),
        (("compositions", 0, "shapes", 0), {}),
        (("token_phases", 0, "rounds_ns"), None),
        (("token_phases", 0, "rounds_ns"), [0.0]),
        (("token_phases", 0, "n_vocab"), 0),
        (("token_phases", 0), ["copy"]),
    ],
)
def test_damage_is_an_error_that_a_user_can_act_on(path: tuple[str | int, ...], value: object) -> None:
    """Wherever a value is of another kind, or no time, it is a MeasurementError and no traceback."""
    with pytest.raises(MeasurementError, match=rf"^calibration: {path[0]}.* again$"):
        Calibration.from_plain(with_value(plain(), path, value))


def test_a_rest_of_nothing_is_a_time() -> None:
    """What the engine spends beside its operators may be too little to see."""
    found = Calibration.from_plain(with_value(plain(), ("compositions", 0, "rest_ns"), [0.0] * 3))
    assert found.compositions[0].rest_ns == (0.0,) * 3

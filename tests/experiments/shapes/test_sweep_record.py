"""The record of a sweep over shapes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from perfsuite.errors import ShapeError
from perfsuite.experiments.shapes.sweep_record import (
    SCHEMA,
    Jump,
    ShapeSweep,
    SweepPoint,
    SweepSetting,
    TileSteps,
    expected_sweep,
    read_sweep,
    to_plain,
    write_sweep,
)
from perfsuite.workload.shapes.operation_shape import Operation, OperationShape
from perfsuite.workload.shapes.shape_case import ShapeCase, Subject, Tiling
from tests.synthetic_shape_sweep import bmm_setting


def setting(operation: Operation, sizes: tuple[int, ...], swept: str, swept_sizes: range) -> SweepSetting:
    """A sweep of the tiled kernels at tile 64."""
    shape = OperationShape(operation=operation, type="f32", sizes=sizes)
    cases = (
        ShapeCase(subject=Subject.TILED, shape=shape.with_sizes(**{swept: size}), tiling=Tiling(tile=64, vector=8))
        for size in swept_sizes
    )
    return SweepSetting(cases=tuple(cases), swept=swept)


def test_a_point_has_the_share_of_its_padded_size() -> None:
    """65 of 128, at half of the time that 256 takes; over 4096 sizes at tile 64, 0.964 of the padded work is of use."""
    sweep = expected_sweep(bmm_setting(range(1, 4097)))
    assert sweep.expected_mean_efficiency_ratio == pytest.approx(0.964, abs=5e-4)
    point = expected_sweep(bmm_setting(range(65, 257))).points[0]
    assert point.size == 65
    assert point.expected_efficiency_ratio == pytest.approx(65 / 128)
    assert point.expected_time_ratio == pytest.approx(0.5)
    assert (point.time_ns, point.efficiency_ratio, point.error_norm, point.missing) == (None, None, None, None)


def test_the_setting_is_told() -> None:
    """Sizes that stay, the one that is swept, and its step."""
    sweep = expected_sweep(bmm_setting())
    assert (sweep.subject, sweep.operation, sweep.type, sweep.tile, sweep.vector) == ("tiled", "bmm", "f32", 64, 8)
    assert (sweep.sizes, sweep.swept, sweep.step) == ({"b": 32, "m": 1, "k": 128}, "n", 64)
    assert (sweep.device, sweep.n_rounds) == ("", 0)


def test_a_dimension_wastes_what_its_own_step_makes_of_it() -> None:
    """One row of a GEMM computes 64 at each n alike; k has steps of 32 whatever the tile, and products have none."""
    sweep = expected_sweep(setting(Operation.GEMM, (1, 1, 128), "n", range(1, 129)))
    assert sweep.points[63].expected_efficiency_ratio == 1.0
    sweep = expected_sweep(setting(Operation.BMM, (32, 1, 100, 1), "k", range(1, 65)))
    assert sweep.step == 32
    assert sweep.points[32].expected_efficiency_ratio == pytest.approx(33 / 64)
    sweep = expected_sweep(setting(Operation.BMM, (1, 1, 100, 32), "b", range(1, 9)))
    assert sweep.step == 1
    assert {point.expected_efficiency_ratio for point in sweep.points} == {1.0}
    assert [point.expected_time_ratio for point in sweep.points] == [size / 8 for size in range(1, 9)]


def test_where_no_tile_is_known_nothing_is_expected() -> None:
    """ggml's operators cut as they see fit."""
    sweep = expected_sweep(bmm_setting(tile=None))
    assert (sweep.step, sweep.tile, sweep.vector, sweep.expected_mean_efficiency_ratio) == (None, None, None, None)
    assert {point.expected_efficiency_ratio for point in sweep.points} == {None}


SWEEP = ShapeSweep(
    device="a device",
    fingerprint={"driver": "1", "device": "a device"},
    subject="tiled",
    operation="bmm",
    type="f32",
    tile=64,
    vector=8,
    sizes={"b": 32, "m": 1, "k": 128},
    swept="n",
    step=64,
    n_rounds=15,
    points=(
        SweepPoint(
            size=64,
            time_ns=100.5,
            lower_ns=99.0,
            upper_ns=110.0,
            expected_time_ratio=0.5,
            efficiency_ratio=0.98,
            expected_efficiency_ratio=1.0,
            error_norm=1e-7,
            is_correct=True,
        ),
        SweepPoint(size=65, expected_time_ratio=1.0, expected_efficiency_ratio=0.5078125, missing="it crashed"),
    ),
    quantile=0.25,
    rank_correlation=0.99,
    time_rank_correlation=0.98,
    mean_efficiency_ratio=0.9,
    expected_mean_efficiency_ratio=0.91,
    noise_ratio=0.003,
    jumps=(Jump(size=64, next_size=65, height_ns=99.0, height_ratio=0.99),),
    tile_steps=TileSteps(step=64, found=(64,), missed=(), hidden=(), extra=()),
    period=64,
)


def json_of(sweep: ShapeSweep) -> Any:
    """What a program reads."""
    return json.loads(json.dumps(to_plain(sweep), allow_nan=False))


def test_json_has_names_for_its_values() -> None:
    """Sizes and the fingerprint by name, points with their units."""
    plain = json_of(SWEEP)
    assert (plain["schema"], plain["rank_correlation"], plain["swept"]) == (SCHEMA, 0.99, "n")
    assert plain["sizes"] == {"b": 32, "m": 1, "k": 128}
    assert plain["fingerprint"] == {"driver": "1", "device": "a device"}
    assert plain["points"][0]["time_ns"] == 100.5
    assert plain["points"][1]["time_ns"] is None
    assert plain["tile_steps"]["found"] == [64]


def test_a_file_holds_what_was_found(tmp_path: Path) -> None:
    """Whole, or an error in one line; what is read from it is what was written."""
    write_sweep(SWEEP, tmp_path / "sweep.json")
    assert read_sweep(tmp_path / "sweep.json") == SWEEP
    assert json.loads((tmp_path / "sweep.json").read_text()) == json_of(SWEEP)
    with pytest.raises(ShapeError, match=r"sweep\.json.*: cannot be written"):
        write_sweep(SWEEP, tmp_path / "sweep.json" / "another.json")


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"schema": 0}, f"schema is 0, expected {SCHEMA}"),
        ({"points": [{"length": 3}]}, r"points\[0\]: size is missing"),
        ({"more": 1}, "field 'more' is unknown"),
        ({"sizes": [1]}, "sizes is a list, expected an object; expected what 'perfsuite sweep"),
    ],
)
def test_what_is_no_sweep_is_refused(changed: dict[str, Any], message: str, tmp_path: Path) -> None:
    """In one line that names the file and says why."""
    (tmp_path / "sweep.json").write_text(json.dumps({**json_of(SWEEP), **changed}))
    with pytest.raises(ShapeError, match=rf"sweep\.json: .*{message}") as refusal:
        read_sweep(tmp_path / "sweep.json")
    assert "\n" not in str(refusal.value)


def test_the_title_names_the_operation_and_its_sizes() -> None:
    """The range that is swept comes first."""
    assert SWEEP.title == "bmm n64:65 b32 m1 k128 f32, tile 64, vector 8"
    assert [point.size for point in SWEEP.measured] == [64]

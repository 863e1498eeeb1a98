"""Single operators of the engine that is installed; what they take is nobody's business here."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from perfsuite.errors import MeasurementError
from perfsuite.expectation.op_rules import MEASURABLE
from perfsuite.expectation.timing.features import family
from perfsuite.expectation.timing.grid import standard_shapes
from perfsuite.expectation.timing.operator_shape import OperatorShape
from perfsuite.measure.engine import Engine
from perfsuite.measure.launch import run_worker
from perfsuite.measure.plan import OperatorsPlan
from perfsuite.workload.ggml_types import GGML_TYPES

BUDGET_NS = 1_000_000
SPREAD_BYTES = 1 << 16

#: A row that is whole blocks of every type.
ROW = 256

PRODUCT = OperatorShape(op="MUL_MAT", type="q8_0", n_inner=ROW, n_outer=32, n_tokens=2)


#: Types of weights but for those below 4 bits with a codebook, which ggml takes seconds to build.
DRAWN_TYPES = tuple(
    name.lower() for name, kind in GGML_TYPES.items() if kind.is_weight and not name.startswith(("IQ1", "IQ2", "IQ3"))
)


@pytest.fixture(scope="module")
def plan(engine: Engine, engine_cache: Path) -> OperatorsPlan:
    """Return a plan of no operator of the installed engine yet, each as shortly as it can be."""
    return OperatorsPlan(
        library_dir=str(engine.library_dir),
        engine_build_id=engine.build_id,
        cache_dir=str(engine_cache),
        n_threads=1,
        shapes=(),
        budget_ns=BUDGET_NS,
        spread_bytes=SPREAD_BYTES,
    )


def times_ns(plan: OperatorsPlan, *shapes: OperatorShape, n_threads: int = 1) -> list[float]:
    times: list[float] = run_worker(replace(plan, shapes=shapes, n_threads=n_threads))["times_ns"]
    assert len(times) == len(shapes)
    return times


def tiny(shape: OperatorShape) -> OperatorShape:
    """Return an operator of the same kind that takes microseconds, its heads and experts in proportion."""
    is_row = shape.op not in ("FLASH_ATTN_EXT", "ROPE") and not (shape.op == "MUL_MAT" and shape.n_heads)
    return replace(
        shape,
        n_inner=ROW if is_row else 64,
        n_outer=min(shape.n_outer, 32),
        n_tokens=3,
        n_heads=min(shape.n_heads, 4),
        n_kv_heads=min(shape.n_kv_heads, 2),
        n_past=min(shape.n_past, 40),
        n_experts=min(shape.n_experts, 4),
        n_used=min(shape.n_used, 2),
    )


#: One shape for each kind and type of the grid.
KINDS = tuple({family(shape): tiny(shape) for shape in standard_shapes()}.values())


def test_every_kind_of_the_grid_can_be_timed(plan: OperatorsPlan) -> None:
    assert all(0.0 < each < 1e9 for each in times_ns(plan, *KINDS))


def test_every_operator_that_can_stand_alone_can_be_timed(plan: OperatorsPlan) -> None:
    """Each row of the table that says what an operator is built of says it as ggml wants it: a token, and a prompt."""
    sizes = {"n_inner": 64, "n_outer": 64, "n_heads": 4, "n_kv_heads": 2, "n_experts": 4, "n_used": 2}
    shapes = [OperatorShape(op=op, type="f32", n_tokens=n, **sizes) for op in sorted(MEASURABLE) for n in (1, 5)]
    assert min(times_ns(plan, *shapes, n_threads=2)) > 0.0


def test_shapes_of_all_kinds_can_be_timed(plan: OperatorsPlan) -> None:
    """Rows that are no whole vectors, and halves that differ by an element; a cache of no whole paddings.

    Mamba's scan has a decay for each state of a channel, and a delta net may have a gate for each row.
    """
    odd = [
        OperatorShape(op=op, type="f32", n_inner=n_inner, n_tokens=5)
        for op in ("MUL/scalar", "CONCAT", "GEGLU")
        for n_inner in (2, ROW - 1, ROW)
    ]
    attention = OperatorShape(op="FLASH_ATTN_EXT", type="f16", n_inner=64, n_heads=4, n_kv_heads=2)
    cached = [replace(attention, n_past=n) for n in (0, 255, 256, 700)]
    scan = OperatorShape(op="SSM_SCAN", type="f32", n_inner=1, n_outer=16, n_tokens=3, n_heads=64, n_kv_heads=1)
    gated = OperatorShape(op="GATED_DELTA_NET", type="f32", n_inner=32, n_outer=1, n_tokens=3, n_heads=4, n_kv_heads=2)
    shapes = (*odd, *cached, scan, gated, replace(gated, n_outer=32))
    assert min(times_ns(plan, *shapes, n_threads=2)) > 0.0


def test_far_more_work_takes_longer(plan: OperatorsPlan) -> None:
    small = OperatorShape(op="MUL_MAT", type="f32", n_inner=ROW, n_outer=32, n_tokens=1)
    short_ns, long_ns = times_ns(plan, small, replace(small, n_inner=ROW * 8, n_outer=32 * 32, n_tokens=64))
    assert long_ns > short_ns


def test_every_type_of_weights_can_be_timed(plan: OperatorsPlan) -> None:
    assert min(times_ns(plan, *(replace(PRODUCT, type=type) for type in DRAWN_TYPES))) > 0.0


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        (replace(PRODUCT, type="q9_9"), r"^no ggml type is called 'q9_9'$"),
        (replace(PRODUCT, op="DANCE", type="f32"), r"^the operator DANCE cannot be measured alone$"),
        (replace(PRODUCT, type="iq2_xs"), r"^weights of type iq2_xs cannot be drawn: they need an importance matrix$"),
    ],
)
def test_what_cannot_be_timed_is_told(plan: OperatorsPlan, shape: OperatorShape, message: str) -> None:
    with pytest.raises(MeasurementError, match=message):
        times_ns(plan, PRODUCT, shape)

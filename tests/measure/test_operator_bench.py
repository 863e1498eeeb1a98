"""Single operators of the engine that is installed; what they take is nobody's business here."""

from __future__ import annotations

import ctypes
from dataclasses import replace
from pathlib import Path

import pytest

from perfsuite.errors import EngineError
from perfsuite.expectation.timing.features import family
from perfsuite.expectation.timing.grid import standard_shapes
from perfsuite.expectation.timing.operator_shape import OperatorShape
from perfsuite.measure.engine import Engine
from perfsuite.measure.native import load_engine_library
from perfsuite.measure.operator_bench import ggml_type_name, operator_time_ns
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
def library(engine: Engine, engine_cache: Path) -> ctypes.CDLL:
    """Load the installed engine into this process."""
    return load_engine_library(engine, engine_cache)


def time_ns(library: ctypes.CDLL, shape: OperatorShape, n_threads: int = 1) -> float:
    """Time an operator as shortly as it can be."""
    return operator_time_ns(library, shape, n_threads=n_threads, budget_ns=BUDGET_NS, spread_bytes=SPREAD_BYTES)


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


@pytest.mark.parametrize("shape", KINDS, ids=lambda shape: "/".join(family(shape)))
def test_every_kind_of_the_grid_can_be_timed(library: ctypes.CDLL, shape: OperatorShape) -> None:
    """Each operator of a calibration is one that the engine computes alone, in finite time."""
    assert 0.0 < time_ns(library, shape) < 1e9


@pytest.mark.parametrize("n_tokens", [1, 300])
@pytest.mark.parametrize(
    "op", ["MUL_MAT", "FLASH_ATTN_EXT", "RMS_NORM+MUL", "GET_ROWS", "SET_ROWS", "MUL_MAT_ID", "MUL/scalar", "CONCAT"]
)
def test_a_token_and_a_prompt_can_be_timed(library: ctypes.CDLL, op: str, n_tokens: int) -> None:
    """A row of activations, and more of them than there are rows of weights or threads."""
    (shape, *_) = (each for each in KINDS if each.op == op)
    n_outer = 512 if op == "SET_ROWS" else shape.n_outer
    assert time_ns(library, replace(shape, n_tokens=n_tokens, n_outer=n_outer), n_threads=2) > 0.0


@pytest.mark.parametrize("op", ["MUL/scalar", "CONCAT", "GEGLU"])
@pytest.mark.parametrize("n_inner", [2, ROW - 1, ROW])
def test_rows_of_any_length_are_scaled_and_joined(library: ctypes.CDLL, op: str, n_inner: int) -> None:
    """Rows that are no whole vectors, and halves that differ by an element, can be timed; so can more than the grid."""
    assert time_ns(library, OperatorShape(op=op, type="f32", n_inner=n_inner, n_tokens=5), n_threads=2) > 0.0


@pytest.mark.parametrize("n_past", [0, 255, 256, 700])
def test_attention_sees_what_the_cache_held(library: ctypes.CDLL, n_past: int) -> None:
    """A single query over a cache that is not whole paddings, that is, and that is split among threads."""
    shape = OperatorShape(op="FLASH_ATTN_EXT", type="f16", n_inner=64, n_heads=4, n_kv_heads=2, n_past=n_past)
    assert time_ns(library, shape, n_threads=2) > 0.0


def test_far_more_work_takes_longer(library: ctypes.CDLL) -> None:
    """A product of ten thousand times the arithmetic takes longer, whatever else the machine does."""
    small = OperatorShape(op="MUL_MAT", type="f32", n_inner=ROW, n_outer=32, n_tokens=1)
    large = replace(small, n_inner=ROW * 8, n_outer=32 * 32, n_tokens=64)
    assert time_ns(library, large) > time_ns(library, small)


@pytest.mark.parametrize("type", DRAWN_TYPES)
def test_every_type_of_weights_can_be_timed(library: ctypes.CDLL, type: str) -> None:
    """A type that a calibration may be asked for is one that ggml knows by that name, and that can be drawn."""
    assert time_ns(library, replace(PRODUCT, type=type)) > 0.0


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        (replace(PRODUCT, type="q9_9"), r"^no ggml type is called 'q9_9'$"),
        (replace(PRODUCT, type=""), r"^no ggml type is called ''$"),
        (replace(PRODUCT, op="DANCE"), r"^the operator DANCE cannot be measured alone$"),
        (replace(PRODUCT, type="iq2_xs"), r"^weights of type iq2_xs cannot be drawn: they need an importance matrix$"),
        (replace(PRODUCT, type="iq1_s"), r"^weights of type iq1_s cannot be drawn: they need an importance matrix$"),
    ],
)
def test_what_cannot_be_timed_is_told(library: ctypes.CDLL, shape: OperatorShape, message: str) -> None:
    """An unknown type or operator, and a type that needs an importance matrix, are one line and no crash."""
    with pytest.raises(EngineError, match=message):
        time_ns(library, shape)


@pytest.mark.parametrize(
    ("type", "name"),
    [
        ("q4_k", b"q4_K"),
        ("Q6_K", b"q6_K"),
        ("q8_0", b"q8_0"),
        ("F16", b"f16"),
        ("bf16", b"bf16"),
        ("iq4_nl", b"iq4_nl"),
    ],
)
def test_types_are_named_as_ggml_names_them(type: str, name: bytes) -> None:
    """The k of k-quants is a capital, everything else is small."""
    assert ggml_type_name(type) == name


class FakeLibrary:
    """Notes what it is asked for, and answers with three samples or with an error."""

    def __init__(self, status: int = 0, text: bytes = b"") -> None:
        self.status, self.text = status, text
        self.spread_bytes: list[int] = []

    def ps_operator_bench(self, *arguments: object) -> int:
        """Return three samples, the median of which is 5, or fail with a text."""
        spec, _, _, samples, _, n_samples, error, _ = arguments
        self.spread_bytes.append(spec._obj.spread_bytes)  # type: ignore[attr-defined]
        samples[:3] = (9.0, 5.0, 1.0)  # type: ignore[index]
        n_samples._obj.value = 3  # type: ignore[attr-defined]
        error.value = self.text  # type: ignore[attr-defined]
        return self.status


def test_weights_are_spread_less_where_arithmetic_takes_longer() -> None:
    """From 128 rows on a quarter of the parameters is enough, which saves time; the samples' median counts.

    A failure has the library's own words, and without any the operator.
    """
    library = FakeLibrary()
    for n_tokens in (1, 127, 128, 512):
        assert time_ns(library, replace(PRODUCT, n_tokens=n_tokens)) == 5.0  # type: ignore[arg-type]
    assert library.spread_bytes == [SPREAD_BYTES, SPREAD_BYTES, SPREAD_BYTES // 4, SPREAD_BYTES // 4]
    for text, message in ((b"no memory", "no memory"), (b"", "ggml cannot measure MUL_MAT")):
        with pytest.raises(EngineError, match=f"^{message}$"):
            time_ns(FakeLibrary(-1, text), PRODUCT)  # type: ignore[arg-type]

"""ggml's operators of the engine that is installed, on the processor and on OpenCL, in native workers."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import platformdirs
import pytest

from perfsuite.errors import EngineError
from perfsuite.measure.engine import Engine
from perfsuite.measure.opencl_backend import set_up_opencl
from perfsuite.measure.plan import ShapesPlan
from perfsuite.measure.shapes.ggml_numbers import F16_ROUNDOFF, ggml_inputs, ggml_tolerance
from perfsuite.measure.shapes.ggml_session import GRAPH_FLOPS, GgmlBench, GgmlSession
from perfsuite.measure.shapes.meters import ShapeSetup
from perfsuite.measure.shapes.native_session import ShapeWorker
from perfsuite.measure.shapes.shape_references import shape_reference
from perfsuite.workload.shapes.operation_shape import STORED_TYPES, OperationShape, block_values
from perfsuite.workload.shapes.shape_case import ShapeCase, Subject

from ...synthetic_shapes import ggml
from ..conftest import waiting_worker


def tolerances(shape_id: str, *, subject: Subject = Subject.GGML_CPU, machine: str = "x86_64") -> tuple[float, float]:
    """Return ggml's tolerance at a shape, and that of sums in F32."""
    case = ggml(shape_id, subject)
    inputs = ggml_inputs(case.shape, seed=1)
    reference = shape_reference(inputs)
    return ggml_tolerance(case, inputs, reference, machine=machine), reference.f32_tolerance


@pytest.mark.parametrize(
    "shape_id", ["gemm/m3-n5-k256/f16", "gemv/n5-k256/q4_k", "attention/heads2-kvheads1-head32-context9/q8_0"]
)
@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_sums_in_f32_have_their_tolerance(shape_id: str, machine: str) -> None:
    """Nothing is added where ggml adds up in F32, whatever the weights; F16 products are the exception on Arm."""
    found, in_f32 = tolerances(shape_id, machine=machine)
    assert (found == in_f32) == (machine == "x86_64" or "f16" not in shape_id)


def test_f16_sums_round_once_a_position() -> None:
    """One position is 2 units, 64 are 8 times as much; OpenCL adds up in F32, and Arm 4096 values as 32 sums of 128."""
    shape_id = "attention/heads2-kvheads1-head32-context64/f16"
    found, in_f32 = tolerances(shape_id, subject=Subject.GGML_OPENCL, machine="aarch64")
    assert found == in_f32
    assert tolerances(shape_id)[0] > 10 * in_f32
    found, in_f32 = tolerances("attention/heads2-kvheads1-head32-context1/f16")
    assert found - in_f32 == pytest.approx(2 * F16_ROUNDOFF)
    many, of_f32 = tolerances("attention/heads64-kvheads64-head32-context64/f16")
    assert many - of_f32 == pytest.approx(16 * F16_ROUNDOFF, rel=0.2)
    found, in_f32 = tolerances("gemv/n512-k4096/f16", machine="aarch64")
    assert found - in_f32 == pytest.approx(2 * 128**0.5 * F16_ROUNDOFF, rel=0.2)


SEED = 7
#: Longest that a worker may be silent.
LIMIT_S = 300.0

#: Sizes of m and n: 1, primes, and one value on either side of the tiles that ggml cuts products into.
AWKWARD = ((1, 1), (1, 7), (2, 8), (3, 15), (5, 17), (7, 1), (8, 9), (9, 63), (31, 64), (33, 65), (64, 131))
#: Rows of the inner dimension in blocks, and in values where a block is one value.
BLOCKS = (1, 2, 3)
INNER = (1, 2, 31, 32, 33, 127, 257)
CONTEXTS = (1, 2, 31, 32, 33, 255, 257, 511, 513)


@contextmanager
def opened(plan: ShapesPlan, environment: Mapping[str, str] | None = None) -> Iterator[GgmlBench]:
    setup = ShapeSetup(plan=replace(plan, seed=SEED), environment=environment or {})
    with closing(GgmlSession(waiting_worker, setup, limit_s=LIMIT_S)) as session:
        assert isinstance(session.bench, GgmlBench)
        yield session.bench


@pytest.fixture(scope="module")
def plan(engine: Engine, engine_cache: Path) -> ShapesPlan:
    """Return the plan of the CPU backend on two threads, so that work is split."""
    return ShapesPlan(
        subject=Subject.GGML_CPU.value,
        n_threads=2,
        log_dir="",
        library_dir=str(engine.library_dir),
        engine_build_id=engine.build_id,
        cache_dir=str(engine_cache),
    )


@pytest.fixture(scope="module")
def bench(plan: ShapesPlan) -> Iterator[GgmlBench]:
    with opened(plan) as bench:
        yield bench


def awkward(kind: str, type: str) -> list[str]:
    """Return shapes of an operation at 1, at primes and beside multiples."""
    block = block_values(type)
    inner = INNER if block == 1 else tuple(block * n_blocks for n_blocks in BLOCKS)
    heads = (1, 33, 64) if block == 1 else (block, 2 * block)
    ids = {
        "gemm": [f"m{m}-n{n}-k{k}" for m, n in AWKWARD for k in inner],
        "gemv": [f"n{n}-k{k}" for n in (1, 2, 7, 8, 9, 31, 64, 65, 257) for k in inner],
        "bmm": [
            f"b{b}-m{m}-n{n}-k{k}" for b in (1, 3, 32) for m, n in ((1, 1), (1, 63), (1, 65), (5, 17)) for k in inner
        ],
        "attention": [
            f"heads{n_heads}-kvheads{n_kv_heads}-head{head}-context{context}"
            for n_heads, n_kv_heads in ((1, 1), (9, 3), (8, 1))
            for head in heads
            for context in CONTEXTS
        ],
    }
    return [f"{kind}/{each}/{type}" for each in ids[kind]]


@pytest.mark.parametrize("type", STORED_TYPES)
@pytest.mark.parametrize("kind", ["gemm", "gemv", "bmm", "attention"])
def test_operators_are_right_at_awkward_shapes(bench: GgmlBench, kind: str, type: str) -> None:
    """Weights of every type, repacked and not; every head has keys of its own, and from 512 on threads share a head."""
    wrong = []
    for shape_id in awkward(kind, type):
        with closing(bench.placed(ggml(shape_id), seed=SEED)) as operation:
            if not (found := operation.verify()).is_correct:
                wrong.append(f"{shape_id}: {found}")
    assert wrong == []


#: Shapes from the smallest to such that an output more or less is a thousandth of the norm.
PERTURBED = (
    "gemm/m1-n1-k256",
    "gemm/m33-n1025-k512",
    "bmm/b32-m1-n513-k256",
    "attention/heads8-kvheads2-head256-context33",
    "attention/heads8-kvheads8-head256-context4097",
)


Rows = np.ndarray[Any, Any]


def without_last_row(rows: Rows) -> None:
    """Drop the last row: the last output column of a product, the last position of a cache's last head."""
    rows[-1] = 0


def without_last_column(rows: Rows) -> None:
    """Drop the last block of every row, or the last values of a type without blocks."""
    rows[:, -(rows.shape[1] // 8) :] = 0


def with_one_wrong_row(rows: Rows) -> None:
    """Exchange the halves of the last row, which puts each of its blocks into another's place."""
    rows[-1] = np.roll(rows[-1], rows.shape[1] // 2)


@pytest.mark.parametrize("change", [without_last_row, without_last_column, with_one_wrong_row])
@pytest.mark.parametrize("type", STORED_TYPES)
@pytest.mark.parametrize("name", [*PERTURBED[:-1], pytest.param(PERTURBED[-1], marks=pytest.mark.long)])
def test_a_wrong_operand_is_caught(
    bench: GgmlBench, name: str, type: str, change: Callable[[Rows], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A dropped row, a dropped last column and blocks in the wrong place exceed the tolerance at any size."""
    case = ggml(f"{name}/{type}")
    right = ggml_inputs(case.shape, seed=SEED)
    changed = right.stored[-1].copy()
    change(changed)
    wrong = replace(right, stored=(*right.stored[:-1], changed))
    with monkeypatch.context() as patched:
        patched.setattr("perfsuite.measure.shapes.ggml_session.ggml_inputs", lambda *_, **__: wrong)
        operation = bench.placed(case, seed=SEED)
    with closing(operation):
        operation._inputs = right
        deviation = operation.verify()
    assert not deviation.is_correct
    assert deviation.error_norm > 2 * deviation.tolerance


def test_a_write_behind_the_output_is_caught(bench: GgmlBench) -> None:
    wrong = OperationShape.from_id("gemv/n7-k32/f32")
    with closing(bench.placed(ggml("gemv/n8-k32/f32"), seed=SEED)) as operation:
        operation.case = replace(operation.case, shape=wrong)
        operation._inputs = ggml_inputs(wrong, seed=SEED)
        assert operation.verify().error_norm == math.inf


def test_small_operators_share_the_start_of_a_graph(bench: GgmlBench, monkeypatch: pytest.MonkeyPatch) -> None:
    """The smaller an operator, the more of them a graph holds, up to 64; a large one is alone."""
    lines: list[list[str]] = []
    ask = ShapeWorker.asked

    def asked(worker: ShapeWorker, line: str, *cases: ShapeCase, content: bytes | memoryview = b"") -> str:
        lines.append(line.split())
        return ask(worker, line, *cases, content=content)

    monkeypatch.setattr(ShapeWorker, "asked", asked)
    for shape_id in ("gemv/n1-k1/f32", f"gemv/n{GRAPH_FLOPS // 20}-k1/f32", "gemm/m128-n128-k128/f32"):
        operation = bench.placed(ggml(shape_id), seed=SEED)
        (sample_ns,) = bench.samples([operation], 3)
        assert sample_ns > 0
        operation.close()
    assert [int(each[1]) for each in lines if each[0] == "place"] == [64, 10, 1]


def test_a_size_that_ggml_has_no_number_for_ends_no_process(bench: GgmlBench) -> None:
    case, why = ggml("gemv/n2147483648-k1/f32"), "a size of 2147483648; expected 1 to 2147483647"
    assert bench.problem(case) == why
    with pytest.raises(EngineError, match=why):
        bench._worker.asked("place 1 MUL_MAT f32 1 2147483648 1 0 0 0", case)


OPENCL_SHAPES = (
    *(
        f"gemm/m{m}-n{n}-k{k}/{type}"
        for m, n in ((1, 1), (3, 7), (9, 65))
        for k in (1, 31, 33)
        for type in ("f32", "f16")
    ),
    *(f"gemm/m{m}-n{n}-k96/{type}" for m, n in ((1, 1), (3, 7), (9, 65)) for type in ("q8_0", "q4_0")),
    "gemm/m9-n65-k256/q4_k",
    *(f"gemv/n{n}-k256/{type}" for n in (1, 7, 65) for type in STORED_TYPES),
    *(f"bmm/b{b}-m1-n{n}-k64/f16" for b in (1, 3) for n in (1, 63, 65)),
)


def test_products_are_right_on_opencl(engine: Engine, plan: ShapesPlan) -> None:
    backend = set_up_opencl(engine, "Intel", Path(platformdirs.user_cache_dir("perfsuite")))
    wanted = replace(
        plan,
        subject=Subject.GGML_OPENCL.value,
        backend_library=str(backend.library) if backend.library else None,
        n_compute_units=backend.device.compute_units,
        fingerprint=(("driver", "1.2"),),
    )
    problems = {
        "ggml-cpu/gemv/n1-k1/f32": "subject ggml-cpu; expected ggml-opencl",
        "ggml-opencl/attention/heads1-kvheads1-head33-context1/f16": (
            "ggml does not compute FLASH_ATTN_EXT of f16 at this shape on GPUOpenCL"
        ),
        "ggml-opencl/gemm/m512-n8-k256/q4_k": "ggml does not compute MUL_MAT of q4_K at this shape on GPUOpenCL",
        "ggml-opencl/gemv/n1-k1/f32": None,
    }
    with opened(wanted, backend.environment()) as bench:
        wrong = []
        for shape_id in OPENCL_SHAPES:
            operation = bench.placed(ShapeCase.from_id(f"shape/ggml-opencl/{shape_id}"), seed=SEED)
            if not (found := operation.verify()).is_correct:
                wrong.append(f"{shape_id}: {found}")
            assert min(bench.samples([operation], 1)) > 0
            operation.close()
        assert wrong == []
        assert ("driver", "1.2") in bench.description.fingerprint
        assert ("units", str(backend.device.compute_units)) in bench.description.fingerprint
        assert {each: bench.problem(ShapeCase.from_id(f"shape/{each}")) for each in problems} == problems

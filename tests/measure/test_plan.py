"""What goes to a worker and what comes back: whole, of the same suite, or refused."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfsuite import __version__
from perfsuite.errors import MeasurementError
from perfsuite.expectation.timing.operator_shape import OperatorShape
from perfsuite.measure.plan import (
    SCHEMA,
    BindingPlan,
    DevicesPlan,
    DuplicationPlan,
    EbpfOverheadPlan,
    EbpfPlan,
    EngineDuplicationPlan,
    IndependentPlan,
    KernelPlan,
    LlamaPlan,
    OpenClCeilingsPlan,
    OperatorsPlan,
    OverheadPlan,
    Plan,
    ProbePlan,
    ShapesPlan,
    StepsPlan,
    SurveyPlan,
    UprobePlan,
    dump_plan,
    dump_record,
    load_plan,
    load_record,
    task_of,
)
from perfsuite.records.codec import pack, unpack

LLAMA = LlamaPlan(
    gguf_path="/tmp/ä model.gguf",
    library_dir="/lib",
    engine_build_id="0123456789abcdef",
    cache_dir="/cache",
    n_threads=2,
    n_prompt=64,
    n_gen=24,
)

PLANS: dict[str, Plan] = {
    "llama": replace(LLAMA, inject_op="MUL_MAT", inject_ratio=0.25),
    "overhead": OverheadPlan(llama=LLAMA, phase="decode", n_pairs=7),
    "ebpf_overhead": EbpfOverheadPlan(
        llama=replace(
            LLAMA,
            ebpf=EbpfPlan(
                helper="/usr/local/libexec/perfsuite/perfsuite-bpf",
                log_path="/logs/ebpf.bpflog",
                levels=7,
                floor_tokens_per_s=5.0,
                counters=("cycles", "page-faults-major"),
            ),
        ),
        n_pairs=7,
    ),
    "steps": StepsPlan(llama=LLAMA, layer_library="/layer.so"),
    "binding": BindingPlan(llama=LLAMA),
    "uprobes": UprobePlan(llama=LLAMA),
    "duplication": DuplicationPlan(
        case_ids=("kernel/add/n8/f32",), platform=None, n_rounds=5, budget_ns=10**9, seed=1, log_dir="/logs"
    ),
    "engine_duplication": EngineDuplicationPlan(
        llama=LLAMA,
        layer_library="/layer.so",
        log_dir="/logs",
        phases=("prefill", "decode"),
        n_kernels=8,
        least_ns=10**5,
        names=("kernel_mul_mm",),
        n_rounds=5,
        budget_ns=10**9,
    ),
    "kernels": KernelPlan(
        case_ids=("kernel/add/n8/f32",),
        platform=None,
        n_repetitions=3,
        seed=1,
        log_dir="/logs",
        cache_dir="/cache",
        n_threads=2,
    ),
    "probes": ProbePlan(cache_dir="/cache", n_threads=2, budget_ms=100),
    "survey": SurveyPlan(cache_dir="/cache", n_threads=4, thread_counts=(1, 2, 4), budget_ms=12_000),
    "operators": OperatorsPlan(
        library_dir="/lib",
        engine_build_id="0123456789abcdef",
        cache_dir="/cache",
        n_threads=2,
        shapes=(
            OperatorShape(op="MUL_MAT_ID", type="q4_k", n_inner=256, n_outer=64, n_tokens=8, n_experts=16, n_used=2),
            OperatorShape(op="FLASH_ATTN_EXT", type="f16", n_inner=64, n_heads=8, n_kv_heads=4, n_past=99),
        ),
        budget_ns=10**6,
        spread_bytes=2**20,
    ),
    "opencl_ceilings": OpenClCeilingsPlan(platform=None, budget_ms=12_000, log_dir="/logs"),
    "independent": IndependentPlan(n_threads=2, working_set_bytes=2**29, budget_ms=100),
    "shapes": ShapesPlan(
        subject="ggml-opencl",
        n_threads=2,
        log_dir="/logs",
        n_compute_units=2,
        fingerprint=(("driver", "1.2"), ("engine", "abc")),
    ),
    "devices": DevicesPlan(platform="Intel"),
}

HEADER_FAULTS = {
    "schema": (SCHEMA + 1, rf"schema {SCHEMA + 1}, this suite reads {SCHEMA}; use one version on both sides"),
    "suite_version": ("0.0.0", rf"made by perfsuite 0\.0\.0, this is {__version__}; install the same version"),
    "task": (
        "dance",
        "names the task 'dance'; known are binding, devices, duplication, ebpf_overhead, engine_duplication, ",
    ),
}


@pytest.mark.parametrize("task", PLANS)
def test_a_plan_comes_back_as_it_was(task: str) -> None:
    """Every kind of plan equals itself after its way through MessagePack, and knows its task."""
    assert load_plan(dump_plan(PLANS[task])) == PLANS[task]
    assert task_of(PLANS[task]) == task


@pytest.mark.parametrize("key", HEADER_FAULTS)
def test_what_another_suite_made_is_refused(key: str) -> None:
    """A plan or a record with another schema, suite version or task is refused with both values."""
    value, message = HEADER_FAULTS[key]
    with pytest.raises(MeasurementError, match=message):
        load_plan(pack({**unpack(dump_plan(LLAMA)), key: value}))
    with pytest.raises(MeasurementError, match=message):
        load_record(pack({**unpack(dump_record("llama", {})), key: value}), "llama")


@pytest.mark.parametrize("plain", [[], 5, "text", None])
def test_what_is_no_header_is_refused(plain: Any) -> None:
    """A plan or record that is not even a mapping is refused with its type."""
    message = rf"has schema '{type(plain).__name__}'"
    with pytest.raises(MeasurementError, match=message):
        load_plan(pack(plain))
    with pytest.raises(MeasurementError, match=message):
        load_record(pack(plain), "llama")


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"task": ["llama"]}, r"record names the task \['llama'\]; known are"),
        ({"task": {}}, "record names the task {}; known are"),
        ({"payload": None}, "record has no object payload"),
    ],
)
def test_a_record_of_wrong_types_is_refused(changed: dict[str, Any], message: str) -> None:
    """A task that cannot be hashed and a payload that is none are one line each."""
    plain = {**unpack(dump_record("llama", {})), **changed}
    with pytest.raises(MeasurementError, match=message):
        load_record(pack(plain), "llama")


def test_a_record_of_another_task_is_refused() -> None:
    """A record of a known task that the plan did not ask for is refused."""
    with pytest.raises(MeasurementError, match=r"of task 'probes', the plan was for 'llama'"):
        load_record(dump_record("probes", {}), "llama")


_PAYLOADS = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.text() | st.binary(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@given(st.dictionaries(st.text(), _PAYLOADS, max_size=5))
def test_a_payload_comes_back_as_it_was(payload: dict[str, Any]) -> None:
    """Numbers, strings, bytes, lists and dicts equal themselves after their way through a record."""
    assert load_record(dump_record("llama", payload), "llama") == payload


@given(st.data())
def test_a_record_that_is_cut_is_refused(data: st.DataObject) -> None:
    """A record or plan that lacks its end, or has something behind it, is a MeasurementError and nothing else."""
    whole = dump_record("llama", {"samples": [1, 2, 3], "text": "abc"})
    cut = data.draw(st.integers(0, len(whole) - 1))
    with pytest.raises(MeasurementError, match="cut short"):
        load_record(whole[:cut], "llama")
    with pytest.raises(MeasurementError, match="cut short"):
        load_plan(whole[:cut])
    with pytest.raises(MeasurementError):
        load_record(whole + b"\x00", "llama")


@pytest.mark.parametrize(
    ("n_depth", "n_prompt", "n_gen", "n_ctx"),
    [(0, 1, 0, 256), (0, 64, 24, 256), (0, 200, 56, 256), (0, 200, 57, 512), (700, 5, 2, 768)],
)
def test_the_context_holds_the_workload_in_steps_of_256(n_depth: int, n_prompt: int, n_gen: int, n_ctx: int) -> None:
    """The context is the least multiple of 256 tokens that holds depth, prompt and generation."""
    assert replace(LLAMA, n_depth=n_depth, n_prompt=n_prompt, n_gen=n_gen).n_ctx == n_ctx


def test_a_shape_that_no_operator_has_is_refused() -> None:
    """A plan whose operator has no elements is a MeasurementError that names the field."""
    plain = unpack(dump_plan(PLANS["operators"]))
    plain["arguments"]["shapes"][0]["n_inner"] = 0
    with pytest.raises(MeasurementError, match="MUL_MAT_ID: n_inner is 0, expected 1 or more"):
        load_plan(pack(plain))

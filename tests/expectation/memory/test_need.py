"""The prediction as a whole."""

from __future__ import annotations

from dataclasses import replace

import pytest

from perfsuite.errors import ArchitectureError, MeasurementError
from perfsuite.expectation.memory.need import MemoryNeed, memory_need

from ...catalogue_workloads import catalogue_workload

NEED = MemoryNeed(
    weights_file_bytes=100,
    weights_mapped_bytes=70,
    weights_repacked_bytes=30,
    kv_bytes=5,
    compute_bytes=50,
    compute_touched_bytes=8,
    output_bytes=2,
    work_bytes=1,
)


def test_the_total_is_what_is_reserved() -> None:
    """Weights twice where they are copied, cache, the whole compute buffer, one row of logits."""
    assert NEED.weights_bytes == 100
    assert NEED.total_bytes == 100 + 5 + 50 + 2


def test_resident_is_what_is_touched() -> None:
    """Of the compute buffer only what is written counts, and the scratch memory does."""
    assert NEED.anonymous_bytes == 30 + 5 + 8 + 2 + 1
    assert NEED.resident_bytes == 70 + 46


def test_the_peak_may_be_at_the_end_of_loading() -> None:
    """The whole file and its copies at once, before its end is given back; or the run, where that takes more."""
    assert NEED.peak_bytes == 130
    assert replace(NEED, kv_bytes=50).peak_bytes == replace(NEED, kv_bytes=50).resident_bytes == 161


def test_a_longer_scenario_needs_more_cache_and_activations() -> None:
    """Weights stay as they are."""
    short, long = (
        memory_need(catalogue_workload("smollm2-135m-q8_0", name), cpu_features=()) for name in ("siso", "lilo")
    )
    assert long.kv_bytes == 3 * short.kv_bytes
    assert long.compute_touched_bytes > 4 * short.compute_touched_bytes
    assert long.weights_bytes == short.weights_bytes


def test_depth_is_computed_too() -> None:
    """Filling the cache before a one-token prompt touches what a prompt of that length does."""
    deep, shallow = (
        memory_need(catalogue_workload("smollm2-135m-l2-q8_0", name), cpu_features=())
        for name in ("p1-g1-d200", "p1-g1")
    )
    assert deep.compute_touched_bytes > 10 * shallow.compute_touched_bytes


def test_an_adapter_is_refused() -> None:
    """Its memory is not predicted, and the message says which field asks for one."""
    workload = catalogue_workload("smollm2-135m-q8_0")
    adapted = replace(workload, settings=replace(workload.settings, lora_rank=8))
    with pytest.raises(ArchitectureError, match="lora_rank is 8"):
        memory_need(adapted, cpu_features=())


def test_a_need_is_read_back() -> None:
    """What was written is what is read."""
    assert MemoryNeed.from_plain(NEED.to_plain()) == NEED


@pytest.mark.parametrize(
    ("plain", "message"),
    [
        ({**NEED.to_plain(), "kv_bytes": -1}, "kv_bytes is -1"),
        ({**NEED.to_plain(), "kv_bytes": True}, "kv_bytes is True"),
        ({"kv_bytes": 1}, "expected the fields"),
        ([], "expected the fields"),
    ],
)
def test_what_is_no_need_is_refused(plain: object, message: str) -> None:
    """The message names the field and its value."""
    with pytest.raises(MeasurementError, match=message):
        MemoryNeed.from_plain(plain)

"""All steps of a generation at once."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perfsuite.errors import ArchitectureError
from perfsuite.expectation.paper import RopeReach, decode_pass, decode_passes
from perfsuite.workload.catalog import find, names
from perfsuite.workload.variant import find_variant, variant_names

_DENSE = [name for name in names() if find(name).moe is None]


@settings(max_examples=60)
@given(
    *(st.sampled_from(_DENSE), st.sampled_from(variant_names()), st.sampled_from(["bf16", "int8", "int4", "q8_0"])),
    *(st.integers(0, 5000), st.integers(0, 1999), st.sampled_from([RopeReach.WHOLE_TABLE, RopeReach.PER_TOKEN])),
)
def test_any_step_is_the_step_alone(
    name: str, variant_name: str, kv: str, n_past: int, step: int, rope: RopeReach
) -> None:
    """Extending two steps gives every operator of a random step exactly."""
    architecture, variant = find(name), replace(find_variant(variant_name), kv=kv)
    sweep = decode_passes(architecture, variant, n_past, 2000, rope=rope)
    alone = decode_pass(architecture, variant, n_past + step, rope=rope)
    assert {key: arrays.at(step) for key, arrays in sweep.by_operator.items()} == dict(alone.by_operator)
    assert sweep.total.at(step) == alone.total
    assert sweep.n_past[step] == n_past + step


def test_a_sweep_is_integers_over_steps() -> None:
    """All arrays are int64 and as long as the generation; bytes moved are read and written ones together."""
    sweep = decode_passes(find("llama-2-7b"), find_variant("bf16-int4-kv4"), 128, 7)
    assert sweep.total.flops.dtype == sweep.n_past.dtype == np.int64
    assert sweep.total.flops.shape == (7,)
    assert (sweep.total.moved_bytes == sweep.total.read_bytes + sweep.total.written_bytes).all()
    assert (np.diff(sweep.total.kv_bytes) == 32 * 4096).all()


def test_a_generation_has_steps() -> None:
    """A generation of no steps is refused."""
    with pytest.raises(ArchitectureError, match="n_steps is 0"):
        decode_passes(find("llama-2-7b"), find_variant("bf16-bf16"), 0, 0)

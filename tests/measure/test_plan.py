"""What goes to a worker and what comes back: whole, or refused; tests/records/test_records.py has the rest."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfsuite.errors import MeasurementError
from perfsuite.measure.plan import dump_record, load_plan, load_record

from ..synthetic_plans import PLAN


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
    assert replace(PLAN, n_depth=n_depth, n_prompt=n_prompt, n_gen=n_gen).n_ctx == n_ctx

"""What goes to a worker and what comes back: whole, or refused; tests/records/test_records.py has the rest."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ..synthetic_plans import PLAN


@pytest.mark.parametrize(
    ("n_depth", "n_prompt", "n_gen", "n_ctx"),
    [(0, 1, 0, 256), (0, 64, 24, 256), (0, 200, 56, 256), (0, 200, 57, 512), (700, 5, 2, 768)],
)
def test_the_context_holds_the_workload_in_steps_of_256(n_depth: int, n_prompt: int, n_gen: int, n_ctx: int) -> None:
    assert replace(PLAN, n_depth=n_depth, n_prompt=n_prompt, n_gen=n_gen).n_ctx == n_ctx

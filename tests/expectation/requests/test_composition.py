"""From an architecture and a request to the costs of its passes."""

from __future__ import annotations

import numpy as np
import pytest

from perfsuite.expectation.requests.analytic import Conventions, expanded
from perfsuite.expectation.requests.composition import Passes, SpeculativePasses, compose, passes_of
from perfsuite.expectation.requests.subject import Optimisations, find_any_subject
from perfsuite.expectation.speculation import Speculation
from perfsuite.records.op_cost import OpCost, PassCost
from perfsuite.workload.variant import find_variant

SMALL = PassCost(by_operator={"gemm": OpCost(flops=10, read_bytes=4)})
LARGE = PassCost(
    by_operator={"gemm": OpCost(flops=30, read_bytes=5), "copy": OpCost(written_bytes=7, kv_written_bytes=2)}
)


def test_steps_are_passes_by_their_place() -> None:
    """Each step is the pass that was named for it, whatever of it the others lack; (10 + 10 + 30) / 3 are 17.

    JSON has Python's integers, not NumPy's.
    """
    steps = expanded([SMALL, LARGE], np.array([0, 0, 1]))
    assert steps.n_steps == 3
    assert steps.at(1).total == SMALL.total
    assert steps.at(2).total == LARGE.total
    assert steps.at(-1).by_operator == LARGE.by_operator
    assert steps.total.flops.tolist() == [10, 10, 30]
    assert steps.total.n_dispatches.tolist() == [1, 1, 2]
    mean, first = steps.mean().total, steps.at(0).total
    assert (mean.flops, mean.read_bytes) == (17, 4)
    assert {type(each) for each in (mean.flops, first.flops, first.n_dispatches)} == {int}


FUSED = Optimisations(variant=find_variant("bf16-int4-fused"))


def passes(name: str, conventions: Conventions) -> Passes:
    return passes_of(find_any_subject(name), FUSED, conventions)


@pytest.mark.parametrize("conventions", list(Conventions))
def test_a_step_is_its_part_of_a_round(conventions: Conventions) -> None:
    """Three steps of the draft and a pass of the target over four tokens, over 1 + .5 + .25 + .125 tokens."""
    target, draft = passes("qwen2.5-1.5b", conventions), passes("qwen2.5-0.5b", conventions)
    steps = SpeculativePasses(target, draft, Speculation(n_draft=3, acceptance_ratio=0.5)).decode(200, 100)
    for at in (0, 54, 99):
        check = target.decode(200 + at, 1, 4).at(0).total
        proposals = [draft.decode(200 + at + ahead, 1).at(0).total for ahead in range(3)]
        flops = check.flops + sum(each.flops for each in proposals)
        moved = check.moved_bytes + sum(each.moved_bytes for each in proposals)
        n_kinds = len(steps.by_operator)
        assert steps.at(at).total.flops == pytest.approx(flops / 1.875, abs=n_kinds)
        assert steps.at(at).total.moved_bytes == pytest.approx(moved / 1.875, abs=2 * n_kinds)


def test_a_better_draft_moves_less() -> None:
    """The more is accepted, the fewer bytes a token costs; with nothing accepted more than without a draft."""
    target, draft = passes("qwen2.5-1.5b", Conventions.ENGINE), passes("qwen2.5-0.5b", Conventions.ENGINE)
    moved = [
        int(SpeculativePasses(target, draft, Speculation(acceptance_ratio=ratio)).decode(200, 1).total.moved_bytes[0])
        for ratio in (0.0, 0.5, 0.8, 1.0)
    ]
    assert moved == sorted(moved, reverse=True)
    assert moved[0] > int(target.decode(200, 1).total.moved_bytes[0]) > moved[-1]


LLAMA = find_any_subject("llama-2-7b")
KV4 = Optimisations(variant=find_variant("bf16-int4-kv4"))


@pytest.mark.parametrize("conventions", list(Conventions))
def test_a_request_is_a_prompt_and_its_steps(conventions: Conventions) -> None:
    """The first step sees the prompt and itself, the last all but itself before it."""
    passes = passes_of(LLAMA, KV4, conventions)
    request = compose(passes, 300, 40)
    assert request.prefill.total == passes.prefill(300).total
    assert request.decode.n_steps == 40
    assert request.decode.at(0).total == passes.decode(300, 1).at(0).total
    assert request.decode.at(39).total == passes.decode(339, 1).at(0).total


@pytest.mark.parametrize("conventions", list(Conventions))
def test_steps_never_get_cheaper(conventions: Conventions) -> None:
    total = compose(passes_of(LLAMA, KV4, conventions), 100, 1000).decode.total
    for costs in (total.flops, total.moved_bytes, total.kv_read_bytes):
        assert (costs[1:] >= costs[:-1]).all()
        assert costs[-1] > costs[0]

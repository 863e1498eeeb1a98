"""How the engine's rules share the roles of a workload."""

from __future__ import annotations

import pytest

from perfsuite.expectation.cases import LlamaWorkload
from perfsuite.expectation.thread_balance import expected_balances, judged_roles
from perfsuite.records.events import Phase

from ..catalogue_workloads import catalogue_workload


def workload(name: str = "smollm2-135m-l2-q8_0", scenario: str = "p64-g24") -> LlamaWorkload:
    """Return a workload whose weights need not be there."""
    return catalogue_workload(name, scenario)


def test_roles_of_a_workload_are_expected() -> None:
    """A decode step's activations are one thread's, its products all threads'; a prefill shares both."""
    decode = expected_balances(workload(), Phase.DECODE, 2)
    prefill = expected_balances(workload(), Phase.PREFILL, 2)
    assert (decode["ffn_swiglu"].balance_ratio, decode["ffn_up"].balance_ratio) == (2.0, 1.0)
    assert decode["ffn_swiglu"].is_on_one_thread
    assert prefill["attn_norm"].balance_ratio == 1.0
    assert 1.0 < prefill["ffn_swiglu"].balance_ratio < 2.0  # the last layer has one row left


def test_roles_that_no_run_can_show_are_not_judged() -> None:
    """What moves a few KiB, or runs once in a prefill, has an expectation and is not judged."""
    subject = workload("smollm2-135m-q8_0")
    decode = judged_roles(subject, Phase.DECODE, 2)
    prefill = judged_roles(subject, Phase.PREFILL, 2)
    assert {"ffn_up", "ffn_swiglu", "flash_attn_ext", "result_output"} <= set(decode)
    assert not {"ffn_inp", "Kcur_rope", "cache_k", "attn_norm"} & set(decode)
    assert {"ffn_inp", "ffn_swiglu", "Kcur_rope"} <= set(prefill)
    assert not {"result_output", "result_norm", "embd"} & set(prefill)


def test_batches_without_outputs_take_no_role_away() -> None:
    """A prompt of several batches, of which the last alone gives logits, has the roles of a short one."""
    short, long = (expected_balances(workload(scenario=each), Phase.PREFILL, 2) for each in ("p64-g1", "p1100-g1"))
    assert set(short) == set(long)


def test_attention_is_expected_over_the_steps() -> None:
    """A decode that crosses into 512 positions mixes both ways of cutting."""
    short = expected_balances(workload(scenario="p64-g24"), Phase.DECODE, 2)["flash_attn_ext"]
    crossing = expected_balances(workload(scenario="p200-g200"), Phase.DECODE, 2)["flash_attn_ext"]
    assert short.balance_ratio == pytest.approx(10 / 9)
    assert crossing.balance_ratio > short.balance_ratio

"""The cases of a run, enumerated without running anything."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfsuite.errors import PerfsuiteError
from perfsuite.expectation.cases import (
    engine_kernel_cases,
    kernel_cases,
    operator_cases,
    phase_cases,
    recorded_operator_cases,
)
from perfsuite.expectation.graph import total_cost
from perfsuite.expectation.llama_workload import LlamaWorkload, llama_workload
from perfsuite.records.case import REST_ROLE, Case
from perfsuite.records.events import EngineRecord, Phase
from perfsuite.records.op_cost import NO_COST, OpCost
from perfsuite.trace.samples import replicate_samples
from perfsuite.workload.catalog import names
from perfsuite.workload.scenario import find_scenario
from perfsuite.workload.weights import resolve

from ..catalogue_workloads import catalogue_weights, catalogue_workload
from ..unknown_weights import write_unknown


def workload(model: str = "smollm2-135m-q8_0", scenario: str = "siso", *, flash_attn: bool = True) -> LlamaWorkload:
    """Describe a workload of the catalogue with a context of 1024 tokens."""
    return replace(catalogue_workload(model, scenario, flash_attn=flash_attn), n_ctx=1024)


def total(case: Case) -> OpCost:
    return sum((part.cost for part in case.costs), start=NO_COST)


def phases(of: LlamaWorkload) -> dict[Phase | None, Case]:
    return {case.phase: case for case in phase_cases(of)}


def test_a_run_has_its_seven_phases_in_order() -> None:
    assert [case.case_id for case in phase_cases(workload())] == [
        f"phase/smollm2-135m-q8_0/siso/{phase}"
        for phase in ("embedding", "prefill", "decode", "copy", "softmax", "sampling", "end_to_end")
    ]


@pytest.mark.parametrize("flash_attn", [True, False])
@pytest.mark.parametrize("name", names())
def test_every_case_has_an_id_of_its_own(name: str, flash_attn: bool) -> None:
    weights = catalogue_weights(f"{name}-l2-q4_0")
    of = llama_workload(weights, find_scenario("siso"), flash_attn=flash_attn)
    assert {case.phase for case in operator_cases(of)} == {Phase.PREFILL, Phase.DECODE}
    cases = [*phase_cases(of), *operator_cases(of), *kernel_cases()]
    assert len({case.case_id for case in cases}) == len(cases)
    assert all(case.case_id.startswith(f"{case.kind}/") for case in cases)


def test_a_scenario_without_a_prompt_or_a_generation_has_no_case_for_it() -> None:
    assert {Phase.PREFILL, Phase.EMBEDDING} & set(phases(workload(scenario="p0-g4"))) == set()
    assert Phase.DECODE not in phases(workload(scenario="p4-g0"))
    assert {case.phase for case in operator_cases(workload(scenario="p4-g0"))} == {Phase.PREFILL}


def test_a_model_of_embeddings_reads_its_prompt_at_once() -> None:
    """The prompt is one pass without chunks, each token gives a row, and nothing lies before or behind it."""
    of = catalogue_workload("nomic-embed-text-v1.5-q8_0", "p700-g4-d9")
    assert [case.phase for case in phase_cases(of)] == [Phase.EMBEDDING, Phase.EMBED, Phase.END_TO_END]
    assert of.prefix == "nomic-embed-text-v1.5-q8_0/p700-g4-d9"
    (batch,) = of.batches(Phase.EMBED)
    assert (batch.n_tokens, batch.n_outputs, batch.n_used) == (700, 700, 700)
    with pytest.raises(PerfsuiteError, match="a model of embeddings reads prompts, and p0-g4 has none"):
        catalogue_workload("bge-small-en-v1.5-q8_0", "p0-g4")


def test_a_text_has_to_fit_into_a_table_of_positions() -> None:
    """What llama.cpp would abort for is refused; what generates needs the places of what it generates, too."""
    assert catalogue_workload("bge-small-en-v1.5-q8_0", "p512-g4").scenario.n_ctx == 512
    for name, n_ctx in (("bge-small-en-v1.5-q8_0", 513), ("tiny-gpt2-q8_0", 517)):
        with pytest.raises(PerfsuiteError, match=f"{name}: has 512 positions, and p513-g4 takes {n_ctx}"):
            catalogue_workload(name, "p513-g4")


def test_operators_of_a_phase_make_up_its_graph() -> None:
    """The costs of the roles sum to the graph's; the rest of the phase is a case without a forecast."""
    of = workload()
    for phase in (Phase.PREFILL, Phase.DECODE):
        cases = [case for case in operator_cases(of) if case.phase is phase]
        assert sum((total(case) for case in cases), start=NO_COST) == total_cost(of.graph(phase))
        assert (cases[-1].role, cases[-1].costs) == (REST_ROLE, ())


def test_the_embedding_is_taken_out_of_the_phase() -> None:
    """Embedding and prefill together cost the graph of the prompt, and decode its graph less the gather."""
    of = workload()
    found = phases(of)
    assert total(found[Phase.EMBEDDING]) + total(found[Phase.PREFILL]) == total_cost(of.graph(Phase.PREFILL))
    assert total(found[Phase.DECODE]) == total_cost(of.graph(Phase.DECODE)[1:])


def test_the_whole_costs_its_parts_times_their_number() -> None:
    """End to end is one prefill, 24 decodes and 25 draws of a token."""
    found = phases(workload())
    times = {Phase.EMBEDDING: 1, Phase.PREFILL: 1, Phase.DECODE: 24}
    times |= dict.fromkeys((Phase.COPY, Phase.SOFTMAX, Phase.SAMPLING), 25)
    parts = (total(found[phase]) * n for phase, n in times.items())
    assert total(found[Phase.END_TO_END]) == sum(parts, start=NO_COST)


def test_a_floor_counts_the_fewest_experts_and_a_ceiling_the_most() -> None:
    """60 experts of which each token uses 4: all may choose the same; ten may read 40, and from fifteen on all.

    The last of the two layers computes the last token alone, which reads 4.
    """
    found = {}
    for n_tokens in (1, 10, 15, 16, 512):
        of = workload("qwen1.5-moe-a2.7b-l2-q8_0", f"p{n_tokens}-g1")
        parts = roles_of(of, Phase.PREFILL)["ffn_moe_gate"].costs
        found[n_tokens] = [
            sum(part.floor_parameter_bytes for part in parts),
            sum(part.cost.parameter_bytes for part in parts),
            sum(part.ceiling_parameter_bytes for part in parts),
        ]
    decode = roles_of(workload("qwen1.5-moe-a2.7b-l2-q8_0"), Phase.DECODE)["ffn_moe_gate"].costs
    one = sum(part.cost.parameter_bytes for part in decode) / (4 + 4)
    assert found[1] == [8 * one] * 3
    assert [found[n_tokens][2] / one - 4 for n_tokens in (10, 15, 16, 512)] == [40, 60, 60, 60]
    assert all(least == 8 * one for least, _, _ in found.values())
    # 60 x (1 - (1 - 4/60)^10) is 29.9 experts of the 40 that ten tokens can reach.
    assert [found[n_tokens][1] / one - 4 for n_tokens in (10, 512)] == [30, 60]


@pytest.mark.parametrize("model", ["smollm2-135m-q4_k_m", "gemma-2-2b-l2-q8_0", "plm-1.8b-l2-f16"])
def test_without_experts_routing_decides_nothing(model: str) -> None:
    of = catalogue_workload(model, "siso")
    parts = [part for case in (*phase_cases(of), *operator_cases(of)) for part in case.costs]
    for part in parts:
        assert part.floor_parameter_bytes == part.cost.parameter_bytes == part.ceiling_parameter_bytes


@pytest.mark.parametrize("type_k", ["f32", "f16", "q8_0", "q4_0"])
@pytest.mark.parametrize("flash_attn", [True, False])
def test_attention_is_computed_in_the_type_of_its_keys(type_k: str, flash_attn: bool) -> None:
    """What reads the cache is of the keys' type: a product, the fused operator, or a cast in front of that."""
    type_v = type_k if flash_attn else "f16"
    of = catalogue_workload(flash_attn=flash_attn, type_k=type_k, type_v=type_v)
    decode = [case for case in operator_cases(of) if case.phase is Phase.DECODE]
    reading = [(case.role, part.type) for case in decode for part in case.costs if part.cost.kv_read_bytes]
    assert reading[0][1] == type_k
    if flash_attn:
        (fused,) = (case.costs for case in decode if case.role == "flash_attn_ext")
        # The fused operator has no 32-bit keys: they are cast to halves in front of it.
        assert {part.type for part in fused} == {"f16" if type_k == "f32" else type_k}


@given(st.integers(1, 2000), st.integers(0, 500))
def test_batches_make_up_the_prompt_and_decode_is_taken_at_its_middle(n_prompt: int, n_depth: int) -> None:
    batches = workload(scenario=f"p{n_prompt}-g1-d{n_depth}").batches(Phase.PREFILL)
    assert sum(batch.n_tokens for batch in batches) == n_prompt
    assert max(batch.n_tokens for batch in batches) <= 512
    assert [batch.n_outputs for batch in batches] == [0] * (len(batches) - 1) + [1]
    assert batches[-1].n_used == n_depth + n_prompt
    assert sorted(batch.n_used for batch in batches) == [batch.n_used for batch in batches]
    (batch,) = workload(scenario=f"p{n_prompt}-g24-d{n_depth}").batches(Phase.DECODE)
    assert (batch.n_tokens, batch.n_outputs, batch.n_used) == (1, 1, n_depth + n_prompt + 12)


def test_an_architecture_without_a_graph_is_judged_by_phase(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the graph is not known there are phases without a forecast, and no operators."""
    monkeypatch.setattr("perfsuite.expectation.llama_workload.KNOWN_GRAPHS", frozenset({"llama"}))
    of = workload("gemma-2-2b-f16")
    assert not of.has_graph
    assert list(operator_cases(of)) == []
    found = phases(of)
    assert found[Phase.PREFILL].costs == found[Phase.DECODE].costs == found[Phase.END_TO_END].costs == ()
    assert found[Phase.SOFTMAX].costs


def test_an_architecture_that_is_not_known_has_phases_without_a_forecast(tmp_path: Path) -> None:
    """Its operators are those that were recorded before, of this workload and of the phases that the scenario has."""
    path = write_unknown(tmp_path / "odd.gguf")
    of = llama_workload(resolve(str(path), cache_dir=tmp_path), find_scenario("p16-g4"))
    assert not of.has_graph
    assert of.settings.flash_attn
    assert [case.case_id for case in phase_cases(of)] == [
        f"phase/odd/p16-g4/{phase}"
        for phase in ("embedding", "prefill", "decode", "copy", "softmax", "sampling", "end_to_end")
    ]
    assert all(case.costs == () for case in phase_cases(of))
    assert list(operator_cases(of)) == []
    own = ("operator/odd/p16-g4/decode/mix/in", "operator/odd/p16-g4/prefill/rest")
    others = ("operator/odd/siso/decode/mix", "operator/odd/p16-g4/copy/mix", "phase/odd/p16-g4/decode")
    found = {case.case_id: (case.phase, case.role) for case in recorded_operator_cases(of, (*own, *others))}
    assert found == {own[0]: (Phase.DECODE, "mix/in"), own[1]: (Phase.PREFILL, REST_ROLE)}


def test_what_a_run_records_is_what_is_enumerated(stored_record: EngineRecord) -> None:
    """The roles of the stored record are those of the cases, phase by phase, and nothing is left over."""
    of = replace(workload("smollm2-135m-l2-q8_0"), n_ctx=256)
    recorded = replicate_samples(stored_record).operator_ns
    for phase in (Phase.PREFILL, Phase.DECODE):
        enumerated = {case.role for case in operator_cases(of) if case.phase is phase} - {REST_ROLE}
        assert set(recorded[phase]) == enumerated


def roles_of(of: LlamaWorkload, phase: Phase) -> dict[str, Case]:
    return {str(case.role): case for case in operator_cases(of) if case.phase is phase}


def test_a_kernel_costs_its_operators() -> None:
    """All operators that a kernel alone computes make up its cost, in each phase its own."""
    of = workload(flash_attn=False)
    kernels = {"kernel_mul_mm": ("Qcur", "Kcur", "ffn_up"), "kernel_soft_max": ("kq_soft_max",)}
    cases = list(engine_kernel_cases(of, {Phase.PREFILL: kernels, Phase.DECODE: {"kernel_mul_mv": ("ffn_up",)}}))
    prefix = "kernel/smollm2-135m-q8_0/siso"
    assert [case.case_id for case in cases] == [
        f"{prefix}/prefill/kernel_mul_mm",
        f"{prefix}/prefill/kernel_soft_max",
        f"{prefix}/decode/kernel_mul_mv",
    ]
    assert [(case.kind, case.role, case.phase) for case in cases[1:]] == [
        ("engine_kernel", "kernel_soft_max", Phase.PREFILL),
        ("engine_kernel", "kernel_mul_mv", Phase.DECODE),
    ]
    prefill, decode = (roles_of(of, phase) for phase in (Phase.PREFILL, Phase.DECODE))
    assert total(cases[0]) == total(prefill["Qcur"]) + total(prefill["Kcur"]) + total(prefill["ffn_up"])
    assert total(cases[1]) == total(prefill["kq_soft_max"])
    assert total(cases[2]) == total(decode["ffn_up"])
    parts = [(part.type, part.working_set_bytes, part.activation_set_bytes) for part in cases[0].costs]
    assert len(set(parts)) == len(parts)


def test_a_kernel_that_shares_an_operator_has_no_cost() -> None:
    """Nobody knows whose cost it is, nor what an unknown operator costs; the others keep theirs."""
    kernels = {"quantize": ("Qcur",), "kernel_mul_mm": ("Qcur", "ffn_up"), "kernel_add": ("l_out",), "odd": ("new",)}
    costs = {case.role: case.costs for case in engine_kernel_cases(workload(), {Phase.DECODE: kernels})}
    assert costs["quantize"] == costs["kernel_mul_mm"] == costs["odd"] == ()
    assert sum(part.cost.flops for part in costs["kernel_add"]) > 0

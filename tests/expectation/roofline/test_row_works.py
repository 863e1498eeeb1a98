"""The work of the rows of a workload."""

from __future__ import annotations

import pytest

from perfsuite.expectation.roofline.roofline_run import RowKind
from perfsuite.expectation.roofline.row_works import row_works
from perfsuite.expectation.roofline.work import Work
from perfsuite.records.events import Phase

from ...catalogue_workloads import catalogue_workload

MODEL = "smollm2-135m-l2-q8_0"


def found_works(weights: str, scenario: str) -> dict[tuple[RowKind, str], Work]:
    """Return the work of every row of a workload."""
    return row_works(catalogue_workload(weights, scenario))


def totals(of: Work) -> tuple[int, int, int, int]:
    """Return FLOPs and the three numbers of bytes."""
    return of.flops, of.least_traffic_bytes, of.traffic_bytes, of.most_traffic_bytes


@pytest.mark.parametrize("weights", [MODEL, "qwen1.5-moe-a2.7b-l2-q4_0", "gemma-2-2b-l2-q4_k_m", "plm-1.8b-l2-f16"])
def test_the_whole_run_is_its_prompt_and_its_tokens(weights: str) -> None:
    """FLOPs and bytes of the whole are those of prefill and as many decodes as there are tokens."""
    found = found_works(weights, "p40-g24")
    prefill, decode, whole = (totals(found[kind, ""]) for kind in (RowKind.PREFILL, RowKind.DECODE, RowKind.WHOLE_RUN))
    assert whole == tuple(one + 24 * other for one, other in zip(prefill, decode, strict=True))


def test_operators_make_up_their_phases() -> None:
    """FLOPs of the roles are those of the phase; their bytes, activations aside, are the phase's."""
    found = found_works(MODEL, "p40-g24")
    for phase, kind in ((Phase.PREFILL, RowKind.PREFILL), (Phase.DECODE, RowKind.DECODE)):
        roles = [of for (each, role), of in found.items() if each is RowKind.OPERATOR and role.startswith(phase.value)]
        assert sum(of.flops for of in roles) == found[kind, ""].flops
        stored = sum(part.stored_bytes for of in roles for part in of.parts)
        embedding = sum(part.stored_bytes for part in found[RowKind.OPERATOR, f"{phase.value}/embd"].parts)
        assert stored - embedding == found[kind, ""].traffic_bytes


@pytest.mark.parametrize("scenario", ["p1-g4", "p16-g4", "p600-g4-d100"])
@pytest.mark.parametrize("weights", ["qwen1.5-moe-a2.7b-l2-q4_0", "deepseek-v2-lite-l3-q4_0", MODEL])
def test_routing_orders_the_bytes_of_every_row(weights: str, scenario: str) -> None:
    """Least, expected and most never change places, in phases, operators and the whole."""
    for of in found_works(weights, scenario).values():
        _, least, expected, most = totals(of)
        assert 0 <= least <= expected <= most


def test_decode_is_bound_by_memory_and_a_long_prompt_by_arithmetic() -> None:
    """Decode of Q8_0 has nearly 2 FLOPs / 1.0625 bytes, and a prompt of 512 tokens hundreds of times that."""
    found = found_works("llama-2-7b-q8_0", "p512-g4")
    intensity = {kind: of.flops / of.traffic_bytes for (kind, role), of in found.items() if not role}
    assert intensity[RowKind.DECODE] == pytest.approx(2 / 1.0625, rel=0.05)
    assert intensity[RowKind.PREFILL] > 400 * intensity[RowKind.DECODE]
    assert intensity[RowKind.DECODE] < intensity[RowKind.WHOLE_RUN] < intensity[RowKind.PREFILL]


def test_steps_across_the_padding_of_the_cache_each_have_their_own() -> None:
    """Of 100 tokens after 200, those beyond position 256 attend over 512, and not over the middle step's 256."""
    found = found_works(MODEL, "p200-g100")
    within, beyond = (found_works(MODEL, f"p200-g1-d{depth}")[RowKind.DECODE, ""] for depth in (0, 200))
    whole = found[RowKind.WHOLE_RUN, ""].flops - found[RowKind.PREFILL, ""].flops
    assert whole == 56 * within.flops + 44 * beyond.flops
    assert whole > 100 * found[RowKind.DECODE, ""].flops

"""What work computes and moves, and the roof over a mixture of types and working sets."""

from __future__ import annotations

from dataclasses import fields

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfsuite.expectation.roofline.point import Work, WorkPart, fastest_flops_per_s, work_of
from perfsuite.expectation.roofline.roofline_run import RowKind
from perfsuite.expectation.roofline.row_works import row_works
from perfsuite.records.case import CaseCost
from perfsuite.records.events import Phase
from perfsuite.records.op_cost import OpCost

from ...catalogue_workloads import catalogue_workload
from ...synthetic_roofline import CACHE_BYTES, part, processor_ceilings, survey, work

MODEL = "smollm2-135m-l2-q8_0"


def found_works(weights: str, scenario: str) -> dict[tuple[RowKind, str], Work]:
    return row_works(catalogue_workload(weights, scenario))


def totals(of: Work) -> tuple[int, int, int, int]:
    return of.flops, of.least_traffic_bytes, of.traffic_bytes, of.most_traffic_bytes


@pytest.mark.parametrize("weights", [MODEL, "qwen1.5-moe-a2.7b-l2-q4_0", "gemma-2-2b-l2-q4_k_m", "plm-1.8b-l2-f16"])
def test_the_whole_run_is_its_prompt_and_its_tokens(weights: str) -> None:
    """FLOPs and bytes of the whole are those of prefill and as many decodes as there are tokens."""
    found = found_works(weights, "p40-g24")
    prefill, decode, whole = (totals(found[kind, ""]) for kind in (RowKind.PREFILL, RowKind.DECODE, RowKind.WHOLE_RUN))
    assert whole == tuple(one + 24 * other for one, other in zip(prefill, decode, strict=True))


def test_operators_make_up_their_phases() -> None:
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
    """A prompt reads more experts than a token does, a short one fewer than it could; a single token has no choice."""
    found = found_works(weights, scenario)
    for of in found.values():
        _, least, expected, most = totals(of)
        assert 0 <= least <= expected <= most
    _, *decode = totals(found[RowKind.DECODE, ""])
    _, least, expected, most = totals(found[RowKind.PREFILL, ""])
    assert len(set(decode)) == 1
    assert (least < expected) is (weights != MODEL and scenario != "p1-g4")
    assert (expected < most) is (weights != MODEL and scenario == "p16-g4")


def test_steps_across_the_padding_of_the_cache_each_have_their_own() -> None:
    """Of 100 tokens after 200, those beyond position 256 attend over 512, and not over the middle step's 256."""
    found = found_works(MODEL, "p200-g100")
    within, beyond = (found_works(MODEL, f"p200-g1-d{depth}")[RowKind.DECODE, ""] for depth in (0, 200))
    whole = found[RowKind.WHOLE_RUN, ""].flops - found[RowKind.PREFILL, ""].flops
    assert whole == 56 * within.flops + 44 * beyond.flops
    assert whole > 100 * found[RowKind.DECODE, ""].flops


#: 100 GB/s in the cache, 20 in memory; 400 GFLOP/s in floats, 1600 in integers.
CEILINGS = survey().of(2)

_AMOUNTS = st.floats(min_value=1.0, max_value=1e13)
_COUNTS = st.integers(0, 10**12)
_SETS = st.integers(1, 10**10)


@st.composite
def any_part(draw: st.DrawFn) -> WorkPart:
    least, stored, most = sorted(draw(st.tuples(_COUNTS, _COUNTS, _COUNTS)))
    return WorkPart(
        type=draw(st.sampled_from(("f32", "f16", "q8_0", "q4_k"))),
        flops=draw(_COUNTS),
        stored_bytes=stored,
        least_stored_bytes=least,
        most_stored_bytes=most,
        stored_set_bytes=draw(_SETS),
        activation_bytes=draw(_COUNTS),
        activation_set_bytes=draw(_SETS),
    )


def any_work() -> st.SearchStrategy[Work]:
    parts = st.lists(any_part(), min_size=1, max_size=5).map(tuple)
    return st.builds(Work, parts=parts, counts_activations=st.booleans())


def test_the_roof_over_one_part_is_its_types_and_its_sets() -> None:
    """Integers over memory have the integers' peak and memory's bandwidth; the same in the cache has the cache's.

    What computes nothing has the floats' peak, and what moves nothing the bandwidth of memory.
    """
    nothing = part(flops=0, stored_bytes=0, least_stored_bytes=0, most_stored_bytes=0)
    for one, expected in (
        (part(), (1600e9, 20e9)),
        (part(stored_set_bytes=CACHE_BYTES), (1600e9, 100e9)),
        (part(type="f32"), (400e9, 20e9)),
        (nothing, (400e9, 20e9)),
    ):
        roof = work(one).roof(CEILINGS)
        assert (roof.peak_flops_per_s, roof.bandwidth_bytes_per_s) == pytest.approx(expected)


def test_the_roof_over_a_mixture_by_hand() -> None:
    """Shares count by time: 2 + 0.8 GFLOP in 1.25 + 2 ms, and 1 GB of memory and 1.1 GB of cache in 50 + 11 ms."""
    floats = part(
        type="f32",
        flops=800_000_000,
        stored_bytes=0,
        least_stored_bytes=0,
        most_stored_bytes=0,
        activation_bytes=10**9,
    )
    roof = work(part(), floats, counts_activations=True).roof(CEILINGS)
    assert roof.peak_flops_per_s == pytest.approx(2.8e9 / 3.25e-3)
    assert roof.bandwidth_bytes_per_s == pytest.approx(2.1e9 / 61e-3)
    assert work(part(), floats).roof(CEILINGS).bandwidth_bytes_per_s == pytest.approx(20e9)


@pytest.mark.parametrize(
    ("type_name", "f16", "int8", "expected"),
    [
        ("f32", 8.0, 9.0, 4.0),
        ("F32", 8.0, 9.0, 4.0),
        ("f16", 8.0, 9.0, 8.0),
        ("f16", 3.0, 9.0, 4.0),
        ("bf16", 8.0, 9.0, 8.0),
        ("f16", None, 9.0, 4.0),
        ("q8_0", 8.0, 9.0, 9.0),
        ("Q4_K", 8.0, 9.0, 9.0),
        ("q4_k", 8.0, 5.0, 8.0),
        ("q8_0", None, None, 4.0),
    ],
)
def test_the_fastest_arithmetic_of_a_type(
    type_name: str, f16: float | None, int8: float | None, expected: float
) -> None:
    """Quantised weights may be multiplied as any type, halves as halves or floats, and floats as floats only."""
    ceilings = processor_ceilings((1, 1.0), fp32_flops_per_s=4.0, f16_flops_per_s=f16, int8_flops_per_s=int8)
    assert fastest_flops_per_s(type_name, ceilings) == expected


@given(any_work(), any_work())
def test_sums_lose_nothing_and_join_what_is_alike(one: Work, other: Work) -> None:
    """Both works together have the FLOPs and bytes of both, in parts of which no two are alike."""
    both = one + Work(parts=other.parts, counts_activations=one.counts_activations)
    places = [(each.type, each.stored_set_bytes, each.activation_set_bytes) for each in both.parts]
    assert len(set(places)) == len(places)
    for field in fields(WorkPart):
        if field.type == "int" and not field.name.endswith("set_bytes"):
            together = sum(getattr(each, field.name) for each in (*one.parts, *other.parts))
            assert sum(getattr(each, field.name) for each in both.parts) == together


def test_a_cost_becomes_a_part() -> None:
    """Parameters and KV are stored bytes, the rest of what moves is activations, and FLOPs stay."""
    cost = OpCost(
        flops=7,
        read_bytes=100,
        written_bytes=30,
        parameter_bytes=60,
        kv_read_bytes=20,
        kv_written_bytes=10,
        n_dispatches=4,
    )
    routed = CaseCost(
        cost=cost,
        type="q8_0",
        working_set_bytes=1000,
        activation_set_bytes=50,
        least_parameter_bytes=40,
        most_parameter_bytes=80,
    )
    assert work_of([routed], counts_activations=True).parts == (
        WorkPart(
            type="q8_0",
            flops=7,
            stored_bytes=90,
            least_stored_bytes=70,
            most_stored_bytes=110,
            stored_set_bytes=1000,
            activation_bytes=40,
            activation_set_bytes=50,
        ),
    )
    (alone,) = work_of([CaseCost(cost=cost, type="f32", working_set_bytes=1)], counts_activations=True).parts
    assert alone.activation_set_bytes == 10
    assert (alone.least_stored_bytes, alone.most_stored_bytes) == (90, 90)


@pytest.mark.parametrize(("quantization", "bytes_per_weight"), [("q8_0", 34 / 32), ("q4_0", 18 / 32), ("f16", 2.0)])
def test_decode_of_a_dense_model_has_two_flops_a_weight(quantization: str, bytes_per_weight: float) -> None:
    """Q8_0 stores a weight in 34/32 bytes and decode multiplies it once: 2 FLOPs / 1.0625 bytes, F16 1 FLOP a byte."""
    decode = found_works(f"llama-2-7b-{quantization}", "p16-g4")[RowKind.DECODE, ""]
    assert decode.flops / decode.traffic_bytes == pytest.approx(2 / bytes_per_weight, rel=0.03)

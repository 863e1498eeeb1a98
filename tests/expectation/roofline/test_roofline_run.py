"""Runs and rows: what they say of themselves, and that broken records are refused by name."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfsuite.errors import MeasurementError
from perfsuite.expectation.llama_workload import llama_workload
from perfsuite.expectation.roofline.ceiling import Resource
from perfsuite.expectation.roofline.roofline_run import SCHEMA, RooflineRun, RowKind, attention_kind, subject_of
from perfsuite.expectation.roofline.survey import Regime, Survey
from perfsuite.workload.catalog import find, names
from perfsuite.workload.scenario import find_scenario

from ...catalogue_workloads import catalogue_weights
from ...json_places import places, with_value
from ...synthetic_roofline import (
    independent_rate,
    memory_record,
    part,
    prefill_row,
    rate,
    roofline_run,
    row,
    subject,
    survey,
    work,
)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, "own-q8_0/siso/t2"),
        ({"n_threads": 8}, "own-q8_0/siso/t8"),
        ({"flash_attn": False}, "own-q8_0/siso/no-flash-attn-t2"),
        ({"type_k": "q8_0"}, "own-q8_0/siso/kv-q8_0-f16-t2"),
        ({"type_v": "q4_0"}, "own-q8_0/siso/kv-f16-q4_0-t2"),
        ({"flash_attn": False, "type_k": "f32", "type_v": "f32"}, "own-q8_0/siso/no-flash-attn-kv-f32-f32-t2"),
    ],
)
def test_a_name_holds_what_is_not_usual(changes: dict[str, object], expected: str) -> None:
    """Weights, scenario and threads are always told; flash attention and the cache's types where they differ."""
    assert subject(**changes).name == expected


def test_a_subject_is_its_workload() -> None:
    """Lengths, settings and size are the workload's own."""
    weights = catalogue_weights("smollm2-135m-l2-q4_k_m")
    workload = llama_workload(weights, find_scenario("p5-g6-d7"), flash_attn=False, type_k="f32", type_v="q8_0")
    assert subject_of(workload, 3) == subject(
        weights="smollm2-135m-l2-q4_k_m",
        architecture="smollm2-135m-l2",
        quantization="q4_k_m",
        n_parameters=find("smollm2-135m").with_layers(2).n_parameters,
        n_layers=2,
        scenario="p5-g6-d7",
        n_prompt=5,
        n_gen=6,
        n_depth=7,
        n_threads=3,
        flash_attn=False,
        type_k="f32",
        type_v="q8_0",
    )


def test_flash_attention_is_told_as_it_runs() -> None:
    """Where an architecture has no flash attention the row does not claim it."""
    weights = catalogue_weights("plm-1.8b-l2-q8_0")
    found = subject_of(llama_workload(weights, find_scenario("siso")), 2)
    assert (found.flash_attn, found.attention) == (False, "mla")


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("llama-2-7b", "mha"),
        ("smollm2-1.7b", "mha"),
        ("smollm2-135m", "gqa"),
        ("llama-3.2-1b", "gqa"),
        ("plm-1.8b", "mla"),
        ("deepseek-v2-lite", "mla"),
    ],
)
def test_attention_is_named_by_its_heads(name: str, expected: str) -> None:
    """A latent vector is MLA, a key head for each head MHA, and anything between GQA."""
    assert attention_kind(find(name)) == expected
    assert {attention_kind(find(each)) for each in names()} == {"mha", "gqa", "mla"}


def plain_run() -> Any:
    """Return a run as JSON has it."""
    return json.loads(json.dumps(roofline_run().to_plain()))


def refused(plain: Any) -> str:
    """Return what is stated of a record that is refused."""
    with pytest.raises(MeasurementError) as told:
        RooflineRun.from_plain(plain)
    text = str(told.value)
    assert text.endswith("; measure again")
    assert "\n" not in text
    return text


def test_a_run_comes_back_as_it_was() -> None:
    """A run with phases, operators, several numbers of threads, missing ceilings, memory and bounds equals itself."""
    operator = row(
        kind=RowKind.OPERATOR,
        role="decode/ffn_up",
        sweep="length",
        setting="16",
        value=16.0,
        work=work(part(), part(type="f32", activation_set_bytes=7), counts_activations=True),
        subject=subject(quantization=None, n_threads=1),
    )
    run = roofline_run(
        row(),
        prefill_row(),
        operator,
        survey=survey(1, 2),
        memory=(memory_record(),),
        bounds=(independent_rate(), independent_rate(n_threads=None)),
    )
    assert RooflineRun.from_plain(json.loads(json.dumps(run.to_plain()))) == run


@given(
    st.lists(st.integers(1, 10**15), min_size=1, max_size=9),
    st.none() | st.floats(-1e9, 1e9),
    st.sampled_from(RowKind),
    st.text(),
    st.booleans(),
)
def test_a_row_comes_back_as_it_was(
    samples_ns: list[int], value: float | None, kind: RowKind, text: str, counts_activations: bool
) -> None:
    """Whatever its samples, kind and labels are, a row survives its way through JSON."""
    of = row(
        samples_ns=tuple(samples_ns),
        value=value,
        kind=kind,
        setting=text,
        role=text,
        work=work(counts_activations=counts_activations),
        subject=subject(weights=text),
    )
    run = roofline_run(of)
    assert RooflineRun.from_plain(json.loads(json.dumps(run.to_plain()))) == run


def test_a_row_is_named_by_its_sweep_subject_and_kind() -> None:
    """The case of a phase ends with its kind, that of an operator with its phase and role."""
    assert row().case == "roofline/base/own-q8_0/siso/t2/decode"
    assert row(kind=RowKind.WHOLE_RUN, sweep="kv").case == "roofline/kv/own-q8_0/siso/t2/whole_run"
    operator = row(kind=RowKind.OPERATOR, role="prefill/ffn_up")
    assert operator.case == "roofline/base/own-q8_0/siso/t2/prefill/ffn_up"


def test_time_is_the_median_and_spread_half_the_range() -> None:
    """One slow process moves the median little; the spread is half of what lies between the outer samples."""
    of = row(samples_ns=(100, 90, 110, 101, 400))
    assert of.time_ns == 101
    assert of.spread_ratio == pytest.approx(155 / 101)
    assert row(samples_ns=(100, 110)).time_ns == 105.0
    assert row(samples_ns=(5,)).spread_ratio == 0.0


def test_rows_are_placed_under_their_own_threads() -> None:
    """With half of the threads, and so of the bandwidth, the same time is twice the share."""
    one, two = row(subject=subject(n_threads=1)), row()
    run = roofline_run(one, two, survey=survey(1, 2))
    assert run.point(two).attainable_ratio == pytest.approx(0.5)
    assert run.point(one).attainable_ratio == pytest.approx(1.0)
    assert run.point(two).case == two.case
    of = row(subject=subject(n_threads=3))
    with pytest.raises(MeasurementError, match="ceilings of cpu with 3 threads"):
        roofline_run(of).point(of)


def test_phases_lie_on_both_sides_of_the_ridge() -> None:
    """Decode is bound by memory and prefill by arithmetic, each at half of what it could."""
    run = roofline_run()
    decode, prefill = (run.point(each) for each in run.rows)
    assert (decode.regime, prefill.regime) == (Regime.MEMORY, Regime.COMPUTE)
    assert (decode.attainable_ratio, prefill.attainable_ratio) == pytest.approx((0.5, 0.5))


def test_the_spread_of_a_rows_ceilings_is_the_surveys() -> None:
    """The spread over a row is that of what limits it: of memory over decode, of arithmetic over prefill."""
    swinging = tuple(
        replace(each, rate=rate(each.rate.best_per_s, 0.3))
        if each.rate and each.resource is Resource.BANDWIDTH
        else each
        for each in survey().ceilings
    )
    run = roofline_run(survey=Survey(ceilings=swinging))
    decode, prefill = run.rows
    assert run.spread_ratio(decode) == pytest.approx(0.3)
    assert run.spread_ratio(prefill) == pytest.approx(0.1)


@pytest.mark.parametrize("schema", [SCHEMA + 1, 0, None, "1"])
def test_another_schema_is_refused(schema: object) -> None:
    """A record of another schema is refused with both numbers."""
    seen = "null" if schema is None else repr(schema)
    assert f"roofline: schema is {seen}, expected {SCHEMA}" in refused({**plain_run(), "schema": schema})


@pytest.mark.parametrize("plain", [None, 5, "text", [], True])
def test_what_is_no_mapping_is_refused(plain: object) -> None:
    """Anything but a mapping is refused."""
    assert "expected an object" in refused(plain)


@pytest.mark.parametrize("of_row", [False, True])
def test_a_missing_field_is_named(of_row: bool) -> None:
    """A run or a row that lacks a field is refused by the field's name."""
    for name in plain_run()["rows"][1] if of_row else plain_run():
        plain = plain_run()
        del (plain["rows"][1] if of_row else plain)[name]
        assert f"roofline{': rows[1]' if of_row else ''}: {name} is missing" in refused(plain)


_PART = ("rows", 0, "work", "parts", 0)


@pytest.mark.parametrize(
    ("at", "value", "told"),
    [
        (("rows", 0, "samples_ns"), [], "samples_ns is a list, expected one or more whole numbers above 0"),
        (("rows", 0, "samples_ns"), [5, -1], "samples_ns[1] is -1, expected a whole number of 1 or more"),
        (("rows", 0, "samples_ns"), [0], "samples_ns[0] is 0"),
        (("rows", 0, "samples_ns"), [1.5], "samples_ns[0] is 1.5"),
        (("rows", 0, "samples_ns"), [float("nan")], "samples_ns[0] is nan"),
        (("rows", 0, "samples_ns"), "123", "samples_ns is '123'"),
        (("rows", 0, "kind"), "dance", "kind is 'dance', expected one of prefill, decode, whole_run, operator"),
        (("rows", 0, "value"), "many", "value is 'many', expected a finite number, or null"),
        (("rows", 0, "value"), float("nan"), "value is nan"),
        (("rows", 0, "subject"), 5, "subject is 5, expected an object"),
        (("rows", 0, "subject"), {"weights": "own"}, "subject: architecture is missing"),
        (("rows", 0, "subject", "n_threads"), "2", "subject.n_threads is '2'"),
        (("rows", 0, "subject", "n_gen"), -1, "subject.n_gen is -1, expected a whole number from 0"),
        (("rows", 0, "subject", "weights"), None, "subject.weights is null, expected text"),
        (("rows", 0, "subject", "quantization"), 8, "subject.quantization is 8, expected text, or null"),
        (("rows", 0, "subject", "flash_attn"), 1, "subject.flash_attn is 1, expected true or false"),
        (("rows", 0, "work"), [], "work is a list, expected an object"),
        (("rows", 0, "work", "parts"), [], "has no FLOPs or moves no bytes"),
        ((*_PART, "flops"), 0, "has no FLOPs or moves no bytes"),
        ((*_PART, "least_stored_bytes"), 0, "has no FLOPs or moves no bytes"),
        ((*_PART, "flops"), "many", "work.parts[0].flops is 'many', expected a whole number from 0"),
        ((*_PART, "flops"), True, "work.parts[0].flops is True"),
        ((*_PART, "stored_bytes"), 0, "work.parts[0]: stored_bytes is 0, expected from least to most"),
        ((*_PART, "most_stored_bytes"), 5, "stored_bytes is 1000000000, expected from least to most"),
        (_PART, {}, "work.parts[0]: type is missing"),
        (("rows",), 5, "rows is 5, expected a list"),
        (("rows",), [5], "rows[0] is 5, expected an object"),
        (("ceilings",), None, "ceilings is null, expected a list"),
        (("ceilings", 0, "kind"), "dance", "ceilings[0]: kind is 'dance', expected one of read, copy, triad"),
        (("ceilings", 0, "rate", "best_per_s"), 0, "ceilings[0].rate.best_per_s is 0"),
        (("fingerprint",), 5, "fingerprint is 5, expected an object"),
        (("memory",), [5], "memory record: is 5, expected an object"),
        (("bounds",), [{}], "bounds[0]: program is missing"),
        (("n_threads",), "two", "n_threads is 'two'"),
        (("n_threads",), float("inf"), "n_threads is inf"),
    ],
)
def test_what_is_broken_is_told(at: tuple[str | int, ...], value: Any, told: str) -> None:
    """A value that no run has is a MeasurementError of one line, never a traceback or a point at nowhere."""
    assert told in refused(with_value(plain_run(), at, value))


@given(
    st.sampled_from([*places(plain_run())]),
    st.none()
    | st.booleans()
    | st.integers(-(10**20), 10**20)
    | st.floats()
    | st.text(max_size=5)
    | st.sampled_from([[], {}, [None]]),
)
def test_any_break_is_refused_or_harmless(at: tuple[str | int, ...], value: Any) -> None:
    """Whatever is in any place of a record, it is refused in words or every row still has its point."""
    try:
        run = RooflineRun.from_plain(with_value(plain_run(), at, value))
        for each in run.rows:
            point = run.point(each)
            assert point.flops_per_s > 0
            assert point.attainable_flops_per_s > 0
            assert point.potential.decades == point.potential.decades
            assert each.spread_ratio >= 0
            assert each.case
    except MeasurementError:
        pass

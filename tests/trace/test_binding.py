"""Requests beneath llama-cpp-python, reduced to what a program waits for and what that is made of."""

from __future__ import annotations

import pytest

from perfsuite.records.binding import BindingRecord, Door, Part, PartSpan, Request
from perfsuite.trace.binding import binding_samples, parts_within


def span(part: Part, start_ns: int, end_ns: int) -> PartSpan:
    return PartSpan(part=part, start_ns=start_ns, end_ns=end_ns)


#: A prompt of 100 ns, then three tokens of 20, 30 and 40 ns; the sampling of the second holds a detokenisation.
SPANS = (
    span(Part.TOKENIZE, 0, 10),
    span(Part.DECODE, 20, 80),
    span(Part.SAMPLING, 80, 95),
    span(Part.DECODE, 101, 111),
    span(Part.DECODE, 121, 131),
    span(Part.DETOKENIZE, 135, 139),
    span(Part.SAMPLING, 132, 142),
    span(Part.DECODE, 151, 181),
)
REQUEST = Request(door=Door.COMPLETION, start_ns=0, token_ns=(100, 120, 150, 190), spans=SPANS)


def test_parts_and_python_are_the_window() -> None:
    """What lies outside of all spans is Python's, so the parts sum up to the whole."""
    parts = parts_within(REQUEST, (0, 100))
    assert parts == {Part.TOKENIZE: 10, Part.DECODE: 60, Part.SAMPLING: 15, Part.PYTHON: 15}
    assert sum(parts.values()) == 100


def test_an_inner_span_is_not_counted_twice() -> None:
    parts = parts_within(REQUEST, (120, 150))
    assert parts == {Part.DECODE: 10, Part.DETOKENIZE: 4, Part.SAMPLING: 6, Part.PYTHON: 10}


def test_samples_are_of_requests_and_of_tokens() -> None:
    record = BindingRecord(load_ns=7, requests=(REQUEST,), span_cost_ns=1)
    samples = binding_samples(record)
    assert samples["load"] == 7
    assert samples["completion/ttft"] == 100
    assert samples["completion/itl"] == 30
    assert samples["completion/itl-p95"] == samples["completion/itl-p99"] == 40
    assert samples["completion/tokens_per_s"] == round(190 / 4)
    assert samples["completion/itl/decode"] == 10
    assert samples["completion/itl/detokenize"] == 0
    assert not any(name.startswith("calls/") for name in samples)


def test_what_was_disturbed_once_is_not_the_time_to_the_first_token() -> None:
    """The faster half of several requests counts."""
    slow = Request(door=Door.CALLS, start_ns=0, token_ns=(1000, 1010), spans=())
    fast = Request(door=Door.CALLS, start_ns=0, token_ns=(100, 110), spans=())
    samples = binding_samples(BindingRecord(load_ns=0, requests=(slow, fast), span_cost_ns=0))
    assert samples["calls/ttft"] == 100


@pytest.mark.parametrize("token_ns", [(), (5,)])
def test_a_request_without_a_second_token_says_nothing(token_ns: tuple[int, ...]) -> None:
    request = Request(door=Door.CALLS, start_ns=0, token_ns=token_ns, spans=())
    assert binding_samples(BindingRecord(load_ns=3, requests=(request,), span_cost_ns=0)) == {"load": 3}

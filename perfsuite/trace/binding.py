"""Reduces requests beneath llama-cpp-python to one sample for each case, and says where their time went."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from statistics import median

from perfsuite.records.binding import ITL, TOKENS_PER_S, TTFT, BindingRecord, Door, Part, PartSpan, Request
from perfsuite.trace.samples import faster_half_mean

#: The percentiles of the latency between two tokens, beside its median.
PERCENTILES = {"itl-p95": 0.95, "itl-p99": 0.99}


def binding_samples(record: BindingRecord) -> dict[str, int]:
    """Return the sample of each subject, ns: ``load``, and by door the latencies, each with its parts.

    ``ttft`` is from the call to the first token, of the faster half of the requests; ``itl`` is the median from one
    token to the next; ``tokens_per_s`` is the time of a request for each of its tokens. Parts are medians over requests
    or tokens, and sum up to about the whole.
    """
    found = {"load": record.load_ns}
    for door in Door:
        requests = [each for each in record.requests if each.door is door and len(each.token_ns) > 1]
        if requests:
            found |= {f"{door.value}/{name}": round(time_ns) for name, time_ns in _of_requests(requests).items()}
    return found


def token_gaps_ns(record: BindingRecord, door: Door) -> tuple[int, ...]:
    """Return how long each token of a door's requests came after the one before."""
    return tuple(_gaps(each for each in record.requests if each.door is door))


def _gaps(requests: Iterable[Request]) -> Iterator[int]:
    return (later - earlier for each in requests for earlier, later in pairwise(each.token_ns))


def percentile_ns(gaps_ns: Sequence[int], part: float) -> int:
    """Return what this part of some latencies does not exceed."""
    return sorted(gaps_ns)[min(len(gaps_ns) - 1, int(len(gaps_ns) * part))]


def _of_requests(requests: Sequence[Request]) -> dict[str, float]:
    gaps_ns = list(_gaps(requests))
    whole_ns = [(each.token_ns[-1] - each.start_ns) / len(each.token_ns) for each in requests]
    prompts = [parts_within(each, (each.start_ns, each.token_ns[0])) for each in requests]
    tokens = [parts_within(each, window) for each in requests for window in pairwise(each.token_ns)]
    return {
        TTFT: faster_half_mean([each.token_ns[0] - each.start_ns for each in requests]),
        ITL: median(gaps_ns),
        **{name: percentile_ns(gaps_ns, part) for name, part in PERCENTILES.items()},
        TOKENS_PER_S: median(whole_ns),
        **{f"{TTFT}/{part.value}": time_ns for part, time_ns in _medians(prompts)},
        **{f"{ITL}/{part.value}": time_ns for part, time_ns in _medians(tokens)},
    }


def parts_within(request: Request, window_ns: tuple[int, int]) -> Mapping[Part, int]:
    """Return what each part took of a window, ns: of nested spans the inner one counts, and the rest is Python's.

    A span lies within the window or outside of it, for a program has its token between two calls.
    """
    start_ns, end_ns = window_ns
    taken: dict[Part, int] = defaultdict(int)
    outer_ns = 0
    for span, inner_ns in _with_inner(request.spans):
        if start_ns <= span.start_ns and span.end_ns <= end_ns:
            taken[span.part] += span.duration_ns - inner_ns
            outer_ns += span.duration_ns - inner_ns
    taken[Part.PYTHON] = end_ns - start_ns - outer_ns
    return taken


def _with_inner(spans: Sequence[PartSpan]) -> Iterator[tuple[PartSpan, int]]:
    """Yield each span with what spans directly inside it took; they come in the order of their ends."""
    ended: list[PartSpan] = []
    for span in spans:
        inner_ns = 0
        while ended and ended[-1].start_ns >= span.start_ns:
            inner_ns += ended.pop().duration_ns
        ended.append(span)
        yield span, inner_ns


def _medians(windows: Sequence[Mapping[Part, int]]) -> Iterator[tuple[Part, float]]:
    parts = [part for part in Part if any(part in each for each in windows)]
    return ((part, median(each.get(part, 0) for each in windows)) for part in parts)

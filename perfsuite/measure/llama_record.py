"""Reads what the native recorder holds of a run into records."""

from __future__ import annotations

import ctypes
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from perfsuite.errors import EngineError
from perfsuite.measure.llama_structs import NativeNode, NativeTensor
from perfsuite.records.events import Evaluation, ExpertChoice, Node, Phase, Span, Split, Tensor, ThreadStart

_FIRST_START = 0xFFFFFFFF


@dataclass(frozen=True, slots=True)
class TickClock:
    """Turns time stamp counter ticks into nanoseconds of the monotonic clock by two calibration points."""

    first_ticks: int
    first_ns: int
    last_ticks: int
    last_ns: int

    def to_ns(self, ticks: int) -> int:
        """Interpolate linearly, in integers, so that nothing is lost over long runs."""
        span_ticks = self.last_ticks - self.first_ticks
        if span_ticks <= 0:
            raise EngineError(f"the time stamp counter did not advance ({self.first_ticks} to {self.last_ticks})")
        return self.first_ns + (ticks - self.first_ticks) * (self.last_ns - self.first_ns) // span_ticks


class NativeRecord:
    """What one native recorder holds; everything is empty where there was none."""

    def __init__(self, library: ctypes.CDLL, recorder: ctypes.c_void_p | None, clock: TickClock) -> None:
        self._library = library
        self._recorder = recorder
        self._clock = clock

    def n_dropped(self) -> int:
        """Return how many events and graphs found no room."""
        return int(self._library.ps_recorder_dropped(self._recorder)) if self._recorder else 0

    def graphs(self) -> Iterator[tuple[Node, ...]]:
        """Return the nodes of each graph."""
        n_graphs = self._library.ps_recorder_n_graphs(self._recorder) if self._recorder else 0
        devices = tuple(self._names("ps_recorder_device_name"))
        for graph in range(n_graphs):
            n_nodes = ctypes.c_int32()
            nodes = self._library.ps_recorder_nodes(self._recorder, graph, ctypes.byref(n_nodes))
            yield tuple(_node(nodes[index], devices) for index in range(n_nodes.value))

    def evaluations(self) -> Iterator[Evaluation]:
        """Return the computations of graphs, in the order of time."""
        events = ((each.ticks, each.graph, each.index) for each in self._all("ps_recorder_events"))
        return evaluations(events, self._clock)

    def thread_starts(self) -> Iterator[ThreadStart]:
        """Return operators on threads, thread by thread."""
        to_ns = self._clock.to_ns
        for event in self._all("ps_recorder_thread_events"):
            yield ThreadStart(
                graph=event.graph,
                node=event.node,
                thread=event.thread,
                start_ns=to_ns(event.ticks),
                end_ns=to_ns(event.end_ticks) if event.end_ticks else None,
            )

    def experts(self, spans: Sequence[Span]) -> Iterator[ExpertChoice]:
        """Return what routers chose, in the order of time, placed in the batches of `spans`."""
        ids = self._library.ps_recorder_expert_ids(self._recorder) if self._recorder else ()
        choices = (
            ExpertChoice(
                ns=self._clock.to_ns(each.ticks),
                layer=each.layer,
                first_token=0,
                n_experts=each.n_experts or None,
                ids=tuple(
                    _row(ids, each.first_id + token * each.n_used, each.n_used) for token in range(each.n_tokens)
                ),
            )
            for each in self._all("ps_recorder_expert_choices")
        )
        return placed(tuple(choices), spans)

    def splits(self) -> Iterator[Split]:
        """Return the parts of graphs that were given to backends, in the order of time."""
        backends = tuple(self._names("ps_recorder_backend_name"))
        for each in self._all("ps_recorder_splits"):
            yield Split(
                graph=each.graph,
                backend=backends[each.backend],
                launch_ns=self._clock.to_ns(each.launch_ticks),
                return_ns=self._clock.to_ns(each.return_ticks),
            )

    def _all(self, function: str) -> Iterator[ctypes.Structure]:
        """Return the structures of an array that a function hands out with their number."""
        if not self._recorder:
            return
        n_items = ctypes.c_uint64()
        items = getattr(self._library, function)(self._recorder, ctypes.byref(n_items))
        for index in range(n_items.value):
            yield items[index]

    def _names(self, function: str) -> Iterator[str]:
        """Return the names that a function hands out by their numbers, up to the first that there is not."""
        number = 0
        while self._recorder and (name := getattr(self._library, function)(self._recorder, number)) is not None:
            yield name.decode(errors="replace")
            number += 1


def evaluations(events: Iterator[tuple[int, int, int]], clock: TickClock) -> Iterator[Evaluation]:
    """Group events: an optional entry of the first operator, the launch, then the end of each timed operator."""
    first_start: int | None = None
    graph, launch, ends = -1, 0, list[int]()
    entered: int | None = None
    for ticks, event_graph, index in events:
        if index == _FIRST_START:
            entered = clock.to_ns(ticks)
        elif index == 0:
            if graph >= 0:
                yield Evaluation(graph=graph, launch_ns=launch, first_start_ns=first_start, ends_ns=tuple(ends))
            graph, launch, ends = event_graph, clock.to_ns(ticks), []
            first_start, entered = entered, None
        else:
            ends.append(clock.to_ns(ticks))
    if graph >= 0:
        yield Evaluation(graph=graph, launch_ns=launch, first_start_ns=first_start, ends_ns=tuple(ends))


def placed(choices: Sequence[ExpertChoice], spans: Sequence[Span]) -> Iterator[ExpertChoice]:
    """Give each choice its first token's place in the batch of the span that it was made in.

    A batch comes in ubatches, one behind the other. A layer that has fewer tokens than the batch, as the last one has,
    computes those alone whose output is wanted, which is the last.
    """
    batches = sorted((each for each in spans if each.phase in (Phase.PREFILL, Phase.DECODE)), key=_start)
    starts = [each.start_ns for each in batches]
    numbers = [bisect_right(starts, choice.ns) - 1 for choice in choices]
    n_tokens = Counter[tuple[int, int]]()
    for number, choice in zip(numbers, choices, strict=True):
        n_tokens[number, choice.layer] += len(choice.ids)
    next_token = Counter[tuple[int, int]]()
    for number, choice in zip(numbers, choices, strict=True):
        of_layer = (number, choice.layer)
        n_left_out = batches[number].n_tokens - n_tokens[of_layer] if number >= 0 else 0
        yield replace(choice, first_token=max(0, n_left_out) + next_token[of_layer])
        next_token[of_layer] += len(choice.ids)


def _start(span: Span) -> int:
    return span.start_ns


def _row(ids: Sequence[int], first: int, n_ids: int) -> tuple[int, ...]:
    return tuple(ids[first + index] for index in range(n_ids))


def _node(node: NativeNode, devices: Sequence[str]) -> Node:
    return Node(
        tensor=_tensor(node.tensor),
        op=node.op.decode(),
        timed=bool(node.timed),
        fused=bool(node.fused),
        sources=tuple(_tensor(node.sources[index]) for index in range(node.n_sources)),
        refused_by=tuple(name for bit, name in enumerate(devices) if node.refused_by >> bit & 1),
    )


def _tensor(tensor: NativeTensor) -> Tensor:
    return Tensor(
        name=tensor.name.decode(errors="replace"),
        type=tensor.type.decode(),
        ne=tuple(tensor.ne),
        nb=tuple(tensor.nb),
        root=tensor.root,
    )

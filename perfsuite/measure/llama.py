"""Drives llama.cpp through the native engine library and turns what it recorded into records."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from perfsuite.errors import EngineError
from perfsuite.measure.plan import LlamaPlan
from perfsuite.records.events import EngineRecord, Evaluation, Node, Phase, Span, Tensor, ThreadStart

RECORDER_KINDS = {"none": 0, "callback": 1, "preload": 2, "cb_eval": 3, "groups": 4}

_ERROR_BYTES = 2048
_FIRST_START = 0xFFFFFFFF
#: Phases in the order of the native side's `ps_phase`.
PHASES = (
    Phase.LOAD,
    Phase.PREFILL,
    Phase.DECODE,
    Phase.COPY,
    Phase.SOFTMAX,
    Phase.SAMPLING,
    Phase.END_TO_END,
)


class _Tensor(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char * 64),
        ("type", ctypes.c_char * 16),
        ("ne", ctypes.c_int64 * 4),
        ("nb", ctypes.c_int64 * 4),
    )


class _Node(ctypes.Structure):
    _fields_ = (
        ("tensor", _Tensor),
        ("op", ctypes.c_char * 32),
        ("timed", ctypes.c_int32),
        ("fused", ctypes.c_int32),
        ("n_sources", ctypes.c_int32),
        ("reserved", ctypes.c_int32),
        ("sources", _Tensor * 5),
    )


class _Event(ctypes.Structure):
    _fields_ = (("ticks", ctypes.c_uint64), ("graph", ctypes.c_uint32), ("index", ctypes.c_uint32))


class _ThreadEvent(ctypes.Structure):
    _fields_ = (
        ("ticks", ctypes.c_uint64),
        ("graph", ctypes.c_uint32),
        ("node", ctypes.c_uint32),
        ("thread", ctypes.c_uint32),
        ("reserved", ctypes.c_uint32),
    )


class _Span(ctypes.Structure):
    _fields_ = (
        ("phase", ctypes.c_int32),
        ("repetition", ctypes.c_int32),
        ("token", ctypes.c_int32),
        ("n_tokens", ctypes.c_int32),
        ("start_ns", ctypes.c_int64),
        ("end_ns", ctypes.c_int64),
    )


class _ClockPoint(ctypes.Structure):
    _fields_ = (("ticks", ctypes.c_uint64), ("ns", ctypes.c_int64), ("width_ticks", ctypes.c_uint64))


class _Options(ctypes.Structure):
    _fields_ = (
        ("gguf_path", ctypes.c_char_p),
        ("type_k", ctypes.c_char_p),
        ("type_v", ctypes.c_char_p),
        ("inject_op", ctypes.c_char_p),
        ("lora_path", ctypes.c_char_p),
        ("backend_path", ctypes.c_char_p),
        ("group_ends", ctypes.c_char_p * 2),
        ("n_group_nodes", ctypes.c_int32 * 2),
        ("inject_ratio", ctypes.c_double),
        ("inject_extra_ns", ctypes.c_int64),
        ("inject_phase_ratio", ctypes.c_double),
        ("n_threads", ctypes.c_int32),
        ("n_ctx", ctypes.c_int32),
        ("n_batch", ctypes.c_int32),
        ("n_ubatch", ctypes.c_int32),
        ("flash_attn", ctypes.c_int32),
        ("n_gpu_layers", ctypes.c_int32),
        ("recorder", ctypes.c_int32),
        ("seed", ctypes.c_uint32),
        ("layout_seed", ctypes.c_uint32),
        ("inject_phases", ctypes.c_uint32),
        ("swa_full", ctypes.c_int32),
    )


class _Workload(ctypes.Structure):
    _fields_ = (
        ("n_prompt", ctypes.c_int32),
        ("n_gen", ctypes.c_int32),
        ("n_depth", ctypes.c_int32),
        ("n_repetitions", ctypes.c_int32),
    )


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


class LlamaEngine:
    """An opened model and context in the native driver; use `open_engine`."""

    def __init__(self, library: ctypes.CDLL, handle: ctypes.c_void_p) -> None:
        self._library = library
        self._handle = handle

    def warm_up(self, plan: LlamaPlan) -> None:
        """Run a short version of the workload, so that buffers, caches and threads are ready; it leaves no trace."""
        longest = max(plan.prompt_lengths, default=plan.n_prompt)
        workload = _Workload(longest, min(plan.n_gen, 1), plan.n_depth, 1)
        _checked(self._library.ps_engine_warm_up, self._handle, ctypes.byref(workload))

    def run(self, plan: LlamaPlan) -> None:
        """Run the workload `plan.n_repetitions` times, with each of its prompts, and keep what it recorded."""
        for n_prompt in plan.prompt_lengths or (plan.n_prompt,):
            workload = _Workload(n_prompt, plan.n_gen, plan.n_depth, plan.n_repetitions)
            _checked(self._library.ps_engine_run, self._handle, ctypes.byref(workload))

    def record(self) -> EngineRecord:
        """Collect spans, graphs and evaluations from the native side."""
        recorder = self._library.ps_engine_recorder(self._handle)
        clock = self._clock()
        return EngineRecord(
            engine_version=self._library.ps_engine_version().decode(),
            spans=tuple(self._spans()),
            graphs=tuple(self._graphs(recorder)) if recorder else (),
            evaluations=tuple(_evaluations(self._events(recorder), clock)) if recorder else (),
            thread_starts=tuple(self._thread_starts(recorder, clock)) if recorder else (),
            n_dropped=self._library.ps_recorder_dropped(recorder) if recorder else 0,
        )

    def _clock(self) -> TickClock:
        first, last = _ClockPoint(), _ClockPoint()
        self._library.ps_engine_clock(self._handle, ctypes.byref(first), ctypes.byref(last))
        return TickClock(first.ticks, first.ns, last.ticks, last.ns)

    def _spans(self) -> Iterator[Span]:
        n_spans = ctypes.c_uint64()
        spans = self._library.ps_engine_spans(self._handle, ctypes.byref(n_spans))
        for index in range(n_spans.value):
            span = spans[index]
            yield Span(
                phase=PHASES[span.phase],
                repetition=span.repetition,
                token=span.token,
                n_tokens=span.n_tokens,
                start_ns=span.start_ns,
                end_ns=span.end_ns,
            )

    def _graphs(self, recorder: ctypes.c_void_p) -> Iterator[tuple[Node, ...]]:
        for graph in range(self._library.ps_recorder_n_graphs(recorder)):
            n_nodes = ctypes.c_int32()
            nodes = self._library.ps_recorder_nodes(recorder, graph, ctypes.byref(n_nodes))
            yield tuple(_node(nodes[index]) for index in range(n_nodes.value))

    def _events(self, recorder: ctypes.c_void_p) -> Iterator[tuple[int, int, int]]:
        n_events = ctypes.c_uint64()
        events = self._library.ps_recorder_events(recorder, ctypes.byref(n_events))
        return ((events[i].ticks, events[i].graph, events[i].index) for i in range(n_events.value))

    def _thread_starts(self, recorder: ctypes.c_void_p, clock: TickClock) -> Iterator[ThreadStart]:
        n_events = ctypes.c_uint64()
        events = self._library.ps_recorder_thread_events(recorder, ctypes.byref(n_events))
        for index in range(n_events.value):
            event = events[index]
            yield ThreadStart(
                graph=event.graph, node=event.node, thread=event.thread, start_ns=clock.to_ns(event.ticks)
            )


@contextmanager
def open_engine(library: ctypes.CDLL, plan: LlamaPlan) -> Iterator[LlamaEngine]:
    """Load the model and open a context; free both at the end.

    Raises
    ------
    EngineError
        llama.cpp cannot load the file or make the context; the message carries its own words.
    """
    _declare(library)
    handle = ctypes.c_void_p()
    options = _options(plan)
    _checked(library.ps_engine_open, ctypes.byref(options), ctypes.byref(handle))
    try:
        yield LlamaEngine(library, handle)
    finally:
        library.ps_engine_close(handle)


def measure_overhead(
    library: ctypes.CDLL, plan: LlamaPlan, *, phase: Phase, n_pairs: int
) -> tuple[list[int], list[int]]:
    """Run plain and recorded contexts in turn, two of each; return the sums of both kinds in ns, pair by pair."""
    _declare(library)
    plain, recorded = (ctypes.c_int64 * n_pairs)(), (ctypes.c_int64 * n_pairs)()
    options, workload = _options(plan), _Workload(plan.n_prompt, plan.n_gen, 0, 1)
    in_prefill = ctypes.c_int32(phase is Phase.PREFILL)
    _checked(
        library.ps_engine_overhead,
        ctypes.byref(options),
        ctypes.byref(workload),
        ctypes.c_int32(n_pairs),
        plain,
        recorded,
        in_prefill,
    )
    return list(plain), list(recorded)


def _options(plan: LlamaPlan) -> _Options:
    if plan.recorder not in RECORDER_KINDS:
        raise EngineError(f"recorder '{plan.recorder}' is not known; known are {', '.join(RECORDER_KINDS)}")
    return _Options(
        gguf_path=plan.gguf_path.encode(),
        type_k=plan.type_k.encode(),
        type_v=plan.type_v.encode(),
        inject_op=plan.inject_op.encode() if plan.inject_op else None,
        lora_path=plan.lora_path.encode() if plan.lora_path else None,
        backend_path=plan.backend_library.encode() if plan.backend_library else None,
        group_ends=(ctypes.c_char_p * 2)(*(bytes(ends) or None for ends in plan.group_ends)),
        n_group_nodes=(ctypes.c_int32 * 2)(*map(len, plan.group_ends)),
        inject_ratio=plan.inject_ratio,
        inject_extra_ns=0,
        inject_phase_ratio=plan.inject_phase_ratio,
        n_threads=plan.n_threads,
        n_ctx=plan.n_ctx,
        n_batch=plan.n_batch,
        n_ubatch=plan.n_ubatch,
        flash_attn=plan.flash_attn,
        n_gpu_layers=plan.n_gpu_layers,
        recorder=RECORDER_KINDS[plan.recorder],
        seed=plan.seed,
        layout_seed=plan.layout_seed,
        inject_phases=sum(1 << PHASES.index(Phase(phase)) for phase in plan.inject_phases),
        swa_full=plan.swa_full,
    )


def _node(node: _Node) -> Node:
    return Node(
        tensor=_tensor(node.tensor),
        op=node.op.decode(),
        timed=bool(node.timed),
        fused=bool(node.fused),
        sources=tuple(_tensor(node.sources[index]) for index in range(node.n_sources)),
    )


def _tensor(tensor: _Tensor) -> Tensor:
    return Tensor(
        name=tensor.name.decode(errors="replace"), type=tensor.type.decode(), ne=tuple(tensor.ne), nb=tuple(tensor.nb)
    )


def _evaluations(events: Iterator[tuple[int, int, int]], clock: TickClock) -> Iterator[Evaluation]:
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


def _checked(function: Callable[..., int], *arguments: object) -> None:
    error = ctypes.create_string_buffer(_ERROR_BYTES)
    if function(*arguments, error, ctypes.c_size_t(_ERROR_BYTES)) != 0:
        raise EngineError(error.value.decode(errors="replace") or "the native driver failed without a word")


def _declare(library: ctypes.CDLL) -> None:
    pointer = ctypes.c_void_p
    count = ctypes.POINTER(ctypes.c_uint64)
    library.ps_engine_version.restype = ctypes.c_char_p
    library.ps_engine_recorder.restype = pointer
    library.ps_engine_recorder.argtypes = (pointer,)
    library.ps_engine_close.argtypes = (pointer,)
    library.ps_engine_clock.argtypes = (pointer, ctypes.POINTER(_ClockPoint), ctypes.POINTER(_ClockPoint))
    library.ps_engine_spans.argtypes = (pointer, count)
    library.ps_engine_spans.restype = ctypes.POINTER(_Span)
    library.ps_recorder_dropped.argtypes = (pointer,)
    library.ps_recorder_dropped.restype = ctypes.c_uint64
    library.ps_recorder_n_graphs.argtypes = (pointer,)
    library.ps_recorder_nodes.argtypes = (pointer, ctypes.c_int32, ctypes.POINTER(ctypes.c_int32))
    library.ps_recorder_nodes.restype = ctypes.POINTER(_Node)
    library.ps_recorder_events.argtypes = (pointer, count)
    library.ps_recorder_events.restype = ctypes.POINTER(_Event)
    library.ps_recorder_thread_events.argtypes = (pointer, count)
    library.ps_recorder_thread_events.restype = ctypes.POINTER(_ThreadEvent)

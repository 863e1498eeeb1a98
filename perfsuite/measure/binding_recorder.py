"""The callback recorder of the native library, attached to a context that llama-cpp-python opens in this process."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from perfsuite.records.events import EngineRecord, Node, Span, Tensor, TickClock

#: ``ps_recorder_kind``, and the events that fit between two drains.
_CALLBACK, _CAPACITY = 1, 1 << 17

_EVENT_BYTES = 16


class _Tensor(ctypes.Structure):
    """``ps_tensor``."""

    _fields_ = (
        ("name", ctypes.c_char * 64),
        ("type", ctypes.c_char * 16),
        ("ne", ctypes.c_int64 * 4),
        ("nb", ctypes.c_int64 * 4),
        ("root", ctypes.c_uint64),
    )

    def record(self) -> Tensor:
        """Return what is kept of it."""
        names = (each.decode(errors="replace") for each in (self.name, self.type))
        name, type_name = names
        return Tensor(name=name, type=type_name, ne=tuple(self.ne), nb=tuple(self.nb), root=self.root)


class _Node(ctypes.Structure):
    """``ps_node``."""

    _fields_ = (
        ("tensor", _Tensor),
        ("op", ctypes.c_char * 32),
        ("timed", ctypes.c_int32),
        ("fused_into_previous", ctypes.c_int32),
        ("n_sources", ctypes.c_int32),
        ("refused_by", ctypes.c_uint32),
        ("sources", _Tensor * 10),
    )

    def record(self) -> Node:
        """Return what is kept of it."""
        return Node(
            tensor=self.tensor.record(),
            op=self.op.decode(errors="replace"),
            sources=tuple(self.sources[at].record() for at in range(self.n_sources)),
            timed=bool(self.timed),
            fused=bool(self.fused_into_previous),
        )


class _ClockPoint(ctypes.Structure):
    """``ps_clock_point``."""

    _fields_ = (("ticks", ctypes.c_uint64), ("ns", ctypes.c_int64), ("width_ticks", ctypes.c_uint64))


class BindingRecorder:
    """A recorder that waits for a context; its library was loaded before llama_cpp is imported."""

    def __init__(self, library: ctypes.CDLL, n_threads: int) -> None:
        """Open it."""
        self._native = library
        self._native.ps_engine_version.restype = ctypes.c_char_p
        for name in ("ps_recorder_open", "ps_recorder_nodes", "ps_recorder_events"):
            getattr(self._native, name).restype = ctypes.c_void_p
        self._native.ps_recorder_dropped.restype = ctypes.c_uint64
        self._recorder = ctypes.c_void_p(
            self._native.ps_recorder_open(_CALLBACK, ctypes.c_uint64(_CAPACITY), ctypes.c_int32(n_threads))
        )
        if not self._recorder:
            raise MemoryError
        self._native.ps_recorder_watch_entries(self._recorder)
        self._first = self._now()

    @contextmanager
    def attached(self, llama_cpp: Any) -> Iterator[None]:
        """Let contexts that are opened meanwhile name their nodes to the recorder."""
        defaults = llama_cpp.llama_context_default_params

        def recorded() -> Any:
            params = defaults()
            params.cb_eval = self._function("ps_recorder_ask", llama_cpp.ggml_backend_sched_eval_callback)
            params.cb_eval_user_data = self._recorder
            return params

        llama_cpp.llama_context_default_params = recorded
        try:
            yield
        finally:
            llama_cpp.llama_context_default_params = defaults

    def follow(self, llama_cpp: Any, context: Any) -> None:
        """Hear of the end of each operator of an open context."""
        tick = self._function("ps_recorder_tick", llama_cpp.ggml_abort_callback)
        llama_cpp.llama_set_abort_callback(context, tick, self._recorder)

    def keep(self) -> None:
        """Make what was recorded safe from `clear`."""
        self._native.ps_recorder_keep(self._recorder)

    def clear(self) -> None:
        """Forget what was recorded since the last `keep`."""
        self._native.ps_recorder_clear(self._recorder)

    def record(self, spans: tuple[Span, ...]) -> EngineRecord:
        """Return what it has."""
        last = self._now()
        n_events = ctypes.c_uint64()
        events = self._native.ps_recorder_events(self._recorder, ctypes.byref(n_events))
        return EngineRecord(
            engine_version=self._native.ps_engine_version().decode(errors="replace"),
            spans=spans,
            graphs=tuple(self._graph(at) for at in range(self._native.ps_recorder_n_graphs(self._recorder))),
            n_dropped=self._native.ps_recorder_dropped(self._recorder),
            events=ctypes.string_at(events, n_events.value * _EVENT_BYTES) if events else b"",
            clock=TickClock(
                first_ticks=self._first.ticks, first_ns=self._first.ns, last_ticks=last.ticks, last_ns=last.ns
            ),
        )

    def _graph(self, at: int) -> tuple[Node, ...]:
        n_nodes = ctypes.c_int32()
        address = self._native.ps_recorder_nodes(self._recorder, ctypes.c_int32(at), ctypes.byref(n_nodes))
        return tuple(each.record() for each in (_Node * n_nodes.value).from_address(address))

    def _function(self, name: str, prototype: Callable[[int], Any]) -> Any:
        address = ctypes.cast(getattr(self._native, name), ctypes.c_void_p).value
        assert address is not None
        return prototype(address)

    def _now(self) -> _ClockPoint:
        point = _ClockPoint()
        self._native.ps_recorder_clock(ctypes.byref(point))
        return point

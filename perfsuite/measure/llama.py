"""Drives llama.cpp through the native engine library and turns what it recorded into records.

A process gets pages of its own for the engine's code and constants, drawn by the kernel anew. All processes share a
library's pages in the page cache, which stay where they came to lie when the file was first read. Two copies of one
build then differ for as long as they stay cached: decode's attention by 3 %, an operator of 2 us by 11 %, in 138 of 138
pairs alike (docs/results.md, 'The main road'). With pages of its own a process draws where its code lies, as it draws
where its buffers do, and what was a bias between two files is noise between processes.
"""

from __future__ import annotations

import ctypes
import mmap
import re
import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from perfsuite.errors import EngineError
from perfsuite.measure.llama_structs import (
    RECORDER_ARRAYS,
    NativeClockPoint,
    NativeNode,
    NativeOptions,
    NativeTensor,
    NativeWorkload,
    declare,
)
from perfsuite.measure.native import checked
from perfsuite.measure.plan import LlamaPlan
from perfsuite.measure.recorders import RECORDERS
from perfsuite.records.events import EngineRecord, Node, Phase, Span, Tensor, TickClock

#: Of a router's choice: where its ids begin, of how many tokens they are, and how many each of these has.
_CHOICE_IDS = struct.Struct("<8xQ4xii4x")


def recorded_fields(library: ctypes.CDLL, recorder: ctypes.c_void_p | None) -> dict[str, Any]:
    """Return the fields of an `EngineRecord` that a recorder fills; all empty where there was none."""
    if not recorder:
        return {"graphs": (), "n_dropped": 0}
    arrays = {name: _array(library, recorder, *each) for name, each in RECORDER_ARRAYS.items()}
    return {
        "graphs": tuple(_graphs(library, recorder)),
        "n_dropped": int(library.ps_recorder_dropped(recorder)),
        **arrays,
        "expert_ids": _expert_ids(library, recorder, arrays["expert_choices"]),
        "backends": tuple(_names(library.ps_recorder_backend_name, recorder)),
    }


def _array(library: ctypes.CDLL, recorder: ctypes.c_void_p, function: str, row_bytes: int) -> bytes:
    n_rows = ctypes.c_uint64()
    rows = getattr(library, function)(recorder, ctypes.byref(n_rows))
    return ctypes.string_at(rows, n_rows.value * row_bytes) if n_rows.value else b""


def _expert_ids(library: ctypes.CDLL, recorder: ctypes.c_void_p, choices: bytes) -> bytes:
    """Return the ids of all choices, which lie one behind the other."""
    if not choices:
        return b""
    first, n_tokens, n_used = _CHOICE_IDS.unpack(choices[-_CHOICE_IDS.size :])
    ids = library.ps_recorder_expert_ids(recorder)
    return ctypes.string_at(ids, (first + n_tokens * n_used) * ctypes.sizeof(ctypes.c_int32))


def _graphs(library: ctypes.CDLL, recorder: ctypes.c_void_p) -> Iterator[tuple[Node, ...]]:
    devices = tuple(_names(library.ps_recorder_device_name, recorder))
    for graph in range(library.ps_recorder_n_graphs(recorder)):
        n_nodes = ctypes.c_int32()
        nodes = library.ps_recorder_nodes(recorder, graph, ctypes.byref(n_nodes))
        yield tuple(_node(nodes[index], devices) for index in range(n_nodes.value))


def _names(function: Any, recorder: ctypes.c_void_p) -> Iterator[str]:
    """Return the names that a function hands out by their numbers, up to the first that there is not."""
    number = 0
    while (name := function(recorder, number)) is not None:
        yield name.decode(errors="replace")
        number += 1


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


_MAPS = Path("/proc/self/maps")

#: A private mapping that is not written to: where it begins and ends, whether it is executed, its file.
_READ_ONLY = re.compile(r"([0-9a-f]+)-([0-9a-f]+) r-([x-])p \S+ \S+ \S+ +(/.+)")


def own_code_pages(library: ctypes.CDLL, library_dir: Path) -> int:
    """Copy what is mapped read-only of the libraries in a folder, and return the bytes that were copied.

    Any `library` that knows the C library serves to call it.

    Each page gets its first byte written over itself, which makes the kernel copy it. 0 where the system lets no page
    of code be written (SELinux without execmod) or is not Linux: then the pages stay those of the file. The mappings
    are the file's as before, so that uprobes find them.
    """
    folder = library_dir.resolve()
    try:
        lines = _MAPS.read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    except OSError:
        return 0
    found = (match for line in lines if (match := _READ_ONLY.fullmatch(line)))
    return sum(
        _copied(library, int(match[1], 16), int(match[2], 16), mmap.PROT_EXEC if match[3] == "x" else 0)
        for match in found
        if Path(match[4]).parent == folder
    )


def _copied(library: ctypes.CDLL, begin: int, end: int, executed: int) -> int:
    start, size = ctypes.c_void_p(begin), ctypes.c_size_t(end - begin)
    if library.mprotect(start, size, mmap.PROT_READ | mmap.PROT_WRITE | executed) != 0:
        return 0
    for page in range(begin, end, mmap.PAGESIZE):
        ctypes.memmove(page, page, 1)
    if library.mprotect(start, size, mmap.PROT_READ | executed) != 0:
        raise EngineError(f"the engine's code at {begin:x} cannot be protected again once it was copied; run again")
    return end - begin


_checked = partial(checked, otherwise="the native driver failed without a word")

#: Phases in the order of the native side's `ps_phase`.
_PHASES = "load prefill decode copy softmax sampling end_to_end"
PHASES = tuple(map(Phase, _PHASES.split()))


class LlamaEngine:
    """An opened model and context in the native driver; use `open_engine`."""

    def __init__(self, library: ctypes.CDLL, handle: ctypes.c_void_p) -> None:
        self._library = library
        self._handle = handle

    def warm_up(self, plan: LlamaPlan) -> None:
        """Run a short version of the workload, so that buffers, caches and threads are ready; it leaves no trace."""
        longest = max(plan.prompt_lengths, default=plan.n_prompt)
        workload = NativeWorkload(longest, min(plan.n_gen, 1), plan.n_depth, 1)
        _checked(self._library.ps_engine_warm_up, self._handle, ctypes.byref(workload))

    def run(self, plan: LlamaPlan) -> None:
        """Run the workload `plan.n_repetitions` times, with each of its prompts, and keep what it recorded."""
        for n_prompt in plan.prompt_lengths or (plan.n_prompt,):
            workload = NativeWorkload(n_prompt, plan.n_gen, plan.n_depth, plan.n_repetitions)
            _checked(self._library.ps_engine_run, self._handle, ctypes.byref(workload))

    def record(self) -> EngineRecord:
        """Collect from the native side what was recorded."""
        first, last = NativeClockPoint(), NativeClockPoint()
        self._library.ps_engine_clock(self._handle, ctypes.byref(first), ctypes.byref(last))
        return EngineRecord(
            engine_version=self._library.ps_engine_version().decode(),
            spans=tuple(self._spans()),
            clock=TickClock(first_ticks=first.ticks, first_ns=first.ns, last_ticks=last.ticks, last_ns=last.ns),
            **recorded_fields(self._library, self._library.ps_engine_recorder(self._handle)),
        )

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


@contextmanager
def open_engine(library: ctypes.CDLL, plan: LlamaPlan) -> Iterator[LlamaEngine]:
    """Load the model and open a context; free both at the end.

    A plan that draws where buffers lie draws where the engine's code lies, too.

    Raises `EngineError` where llama.cpp cannot load the file or make the context; the message carries its own words.
    """
    declare(library)
    handle = ctypes.c_void_p()
    options = _options(plan)
    _checked(library.ps_engine_open, ctypes.byref(options), ctypes.byref(handle))
    try:
        if plan.layout_seed:
            own_code_pages(library, Path(plan.library_dir))
        yield LlamaEngine(library, handle)
    finally:
        library.ps_engine_close(handle)


def _options(plan: LlamaPlan) -> NativeOptions:
    kinds = {each.name: each.native for each in RECORDERS.values() if each.native is not None}
    if plan.recorder not in kinds:
        raise EngineError(f"recorder '{plan.recorder}' is not known; known are {', '.join(kinds)}")
    return NativeOptions(
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
        recorder=kinds[plan.recorder],
        seed=plan.seed,
        layout_seed=plan.layout_seed,
        inject_phases=sum(1 << PHASES.index(Phase(phase)) for phase in plan.inject_phases),
        swa_full=plan.swa_full,
    )

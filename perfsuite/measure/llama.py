"""Drives llama.cpp through the native engine library and turns what it recorded into records."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from perfsuite.errors import EngineError
from perfsuite.measure.code_pages import own_code_pages
from perfsuite.measure.llama_record import recorded_fields
from perfsuite.measure.llama_structs import NativeClockPoint, NativeOptions, NativeWorkload, declare
from perfsuite.measure.native_calls import checked
from perfsuite.measure.plan import LlamaPlan
from perfsuite.records.events import EngineRecord, Phase, Span, TickClock

RECORDER_KINDS = {"none": 0, "callback": 1, "preload": 2, "cb_eval": 3, "groups": 4, "experts": 5, "splits": 6}

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
        return EngineRecord(
            engine_version=self._library.ps_engine_version().decode(),
            spans=tuple(self._spans()),
            clock=self._clock(),
            **recorded_fields(self._library, self._library.ps_engine_recorder(self._handle)),
        )

    def _clock(self) -> TickClock:
        first, last = NativeClockPoint(), NativeClockPoint()
        self._library.ps_engine_clock(self._handle, ctypes.byref(first), ctypes.byref(last))
        return TickClock(first_ticks=first.ticks, first_ns=first.ns, last_ticks=last.ticks, last_ns=last.ns)

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


def measure_overhead(
    library: ctypes.CDLL, plan: LlamaPlan, *, phase: Phase, n_pairs: int
) -> tuple[list[int], list[int]]:
    """Run plain and recorded contexts in turn, two of each; return the sums of both kinds in ns, pair by pair."""
    declare(library)
    plain, recorded = (ctypes.c_int64 * n_pairs)(), (ctypes.c_int64 * n_pairs)()
    options, workload = _options(plan), NativeWorkload(plan.n_prompt, plan.n_gen, 0, 1)
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


def _options(plan: LlamaPlan) -> NativeOptions:
    if plan.recorder not in RECORDER_KINDS:
        raise EngineError(f"recorder '{plan.recorder}' is not known; known are {', '.join(RECORDER_KINDS)}")
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
        recorder=RECORDER_KINDS[plan.recorder],
        seed=plan.seed,
        layout_seed=plan.layout_seed,
        inject_phases=sum(1 << PHASES.index(Phase(phase)) for phase in plan.inject_phases),
        swa_full=plan.swa_full,
    )

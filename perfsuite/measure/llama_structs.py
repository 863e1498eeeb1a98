"""The native engine library's structures and functions, as ctypes sees them."""

from __future__ import annotations

import ctypes


class NativeTensor(ctypes.Structure):
    """The native side's ``ps_tensor``."""

    _fields_ = (
        ("name", ctypes.c_char * 64),
        ("type", ctypes.c_char * 16),
        ("ne", ctypes.c_int64 * 4),
        ("nb", ctypes.c_int64 * 4),
        ("root", ctypes.c_uint64),
    )


class NativeNode(ctypes.Structure):
    """The native side's ``ps_node``."""

    _fields_ = (
        ("tensor", NativeTensor),
        ("op", ctypes.c_char * 32),
        ("timed", ctypes.c_int32),
        ("fused", ctypes.c_int32),
        ("n_sources", ctypes.c_int32),
        ("refused_by", ctypes.c_uint32),
        ("sources", NativeTensor * 5),
    )


class NativeSpan(ctypes.Structure):
    """The native side's ``ps_span``."""

    _fields_ = (
        ("phase", ctypes.c_int32),
        ("repetition", ctypes.c_int32),
        ("token", ctypes.c_int32),
        ("n_tokens", ctypes.c_int32),
        ("start_ns", ctypes.c_int64),
        ("end_ns", ctypes.c_int64),
    )


class NativeClockPoint(ctypes.Structure):
    """The native side's ``ps_clock_point``."""

    _fields_ = (("ticks", ctypes.c_uint64), ("ns", ctypes.c_int64), ("width_ticks", ctypes.c_uint64))


class NativeOptions(ctypes.Structure):
    """The native side's ``ps_options``."""

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


class NativeWorkload(ctypes.Structure):
    """The native side's ``ps_workload``."""

    _fields_ = (
        ("n_prompt", ctypes.c_int32),
        ("n_gen", ctypes.c_int32),
        ("n_depth", ctypes.c_int32),
        ("n_repetitions", ctypes.c_int32),
    )


#: By field of an `EngineRecord`: the function that hands out an array with its number of rows, and the bytes of a row.
RECORDER_ARRAYS = {
    "events": ("ps_recorder_events", 16),
    "thread_events": ("ps_recorder_thread_events", 32),
    "expert_choices": ("ps_recorder_expert_choices", 32),
    "splits": ("ps_recorder_splits", 24),
}


def declare(library: ctypes.CDLL) -> None:
    """Say what the functions take and return; those that only fail or do not need no more than the default."""
    pointer = ctypes.c_void_p
    count = ctypes.POINTER(ctypes.c_uint64)
    library.ps_engine_version.restype = ctypes.c_char_p
    library.ps_engine_recorder.restype = pointer
    library.ps_engine_recorder.argtypes = (pointer,)
    library.ps_engine_close.argtypes = (pointer,)
    library.ps_engine_clock.argtypes = (pointer, ctypes.POINTER(NativeClockPoint), ctypes.POINTER(NativeClockPoint))
    library.ps_engine_spans.argtypes = (pointer, count)
    library.ps_engine_spans.restype = ctypes.POINTER(NativeSpan)
    library.ps_recorder_dropped.argtypes = (pointer,)
    library.ps_recorder_dropped.restype = ctypes.c_uint64
    library.ps_recorder_n_graphs.argtypes = (pointer,)
    library.ps_recorder_nodes.argtypes = (pointer, ctypes.c_int32, ctypes.POINTER(ctypes.c_int32))
    library.ps_recorder_nodes.restype = ctypes.POINTER(NativeNode)
    for function, _ in RECORDER_ARRAYS.values():
        getattr(library, function).argtypes = (pointer, count)
        getattr(library, function).restype = pointer
    library.ps_recorder_expert_ids.argtypes = (pointer,)
    library.ps_recorder_expert_ids.restype = pointer
    library.ps_recorder_backend_name.argtypes = (pointer, ctypes.c_int32)
    library.ps_recorder_backend_name.restype = ctypes.c_char_p
    library.ps_recorder_device_name.argtypes = (pointer, ctypes.c_int32)
    library.ps_recorder_device_name.restype = ctypes.c_char_p

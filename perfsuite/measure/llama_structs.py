"""The native engine library's structures and functions, as ctypes sees them."""

from __future__ import annotations

import ctypes
from ctypes import POINTER, c_char, c_char_p, c_double, c_int32, c_int64, c_uint32, c_uint64, c_void_p

from perfsuite.measure.native import declare_functions, native_fields


class NativeTensor(ctypes.Structure):
    """The native side's ``ps_tensor``."""

    _fields_ = native_fields((c_char * 64, "name"), (c_char * 16, "type"), (c_int64 * 4, "ne nb"), (c_uint64, "root"))


class NativeNode(ctypes.Structure):
    """The native side's ``ps_node``."""

    _fields_ = native_fields(
        (NativeTensor, "tensor"),
        (c_char * 32, "op"),
        (c_int32, "timed fused n_sources"),
        (c_uint32, "refused_by"),
        (NativeTensor * 5, "sources"),
    )


class NativeSpan(ctypes.Structure):
    """The native side's ``ps_span``."""

    _fields_ = native_fields((c_int32, "phase repetition token n_tokens"), (c_int64, "start_ns end_ns"))


class NativeClockPoint(ctypes.Structure):
    """The native side's ``ps_clock_point``."""

    _fields_ = native_fields((c_uint64, "ticks"), (c_int64, "ns"), (c_uint64, "width_ticks"))


class NativeOptions(ctypes.Structure):
    """The native side's ``ps_options``."""

    _fields_ = native_fields(
        (c_char_p, "gguf_path type_k type_v inject_op lora_path backend_path"),
        (c_char_p * 2, "group_ends"),
        (c_int32 * 2, "n_group_nodes"),
        (c_double, "inject_ratio"),
        (c_int64, "inject_extra_ns"),
        (c_double, "inject_phase_ratio"),
        (c_int32, "n_threads n_ctx n_batch n_ubatch flash_attn n_gpu_layers recorder"),
        (c_uint32, "seed layout_seed inject_phases"),
        (c_int32, "swa_full"),
    )


class NativeWorkload(ctypes.Structure):
    """The native side's ``ps_workload``."""

    _fields_ = native_fields((c_int32, "n_prompt n_gen n_depth n_repetitions"))


_COUNT = POINTER(c_uint64)

#: What the functions return and take; those that only fail or do not need no more than the default.
_FUNCTIONS = (
    ("ps_engine_version", c_char_p, ()),
    ("ps_engine_recorder", c_void_p, (c_void_p,)),
    ("ps_engine_close", None, (c_void_p,)),
    ("ps_engine_clock", None, (c_void_p, POINTER(NativeClockPoint), POINTER(NativeClockPoint))),
    ("ps_engine_spans", POINTER(NativeSpan), (c_void_p, _COUNT)),
    ("ps_recorder_dropped", c_uint64, (c_void_p,)),
    ("ps_recorder_n_graphs", c_int32, (c_void_p,)),
    ("ps_recorder_nodes", POINTER(NativeNode), (c_void_p, c_int32, POINTER(c_int32))),
    ("ps_recorder_expert_ids", c_void_p, (c_void_p,)),
    ("ps_recorder_backend_name", c_char_p, (c_void_p, c_int32)),
    ("ps_recorder_device_name", c_char_p, (c_void_p, c_int32)),
)


#: By field of an `EngineRecord`: the function that hands out an array with its number of rows, and the bytes of a row.
RECORDER_ARRAYS = {
    "events": ("ps_recorder_events", 16),
    "thread_events": ("ps_recorder_thread_events", 32),
    "expert_choices": ("ps_recorder_expert_choices", 32),
    "splits": ("ps_recorder_splits", 24),
}


def declare(library: ctypes.CDLL) -> None:
    """Say what the library's functions return and take."""
    arrays = ((function, c_void_p, (c_void_p, _COUNT)) for function, _ in RECORDER_ARRAYS.values())
    declare_functions(library, *_FUNCTIONS, *arrays)

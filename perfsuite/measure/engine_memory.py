"""The engine's own account of its buffers, without parsing its log: ``llama_get_memory_breakdown``.

The function is exported by ``libllama`` and returns a C++ ``std::map`` from buffer types to sizes, so it is called with
room for that map, whose nodes are then read as GNU's libstdc++ lays them out. This happens in a process of its own:
`engine_memory` starts one, which opens the model and a context through llama-cpp-python and computes nothing.

*Source*: ``src/llama-ext.h`` of llama.cpp, as shipped with llama-cpp-python 0.3.36; ``bits/stl_tree.h`` of libstdc++.
"""

from __future__ import annotations

import ctypes
import importlib
import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from perfsuite.errors import EngineError, MeasurementError, PerfsuiteError
from perfsuite.expectation.memory.need import CPU_FEATURES
from perfsuite.measure.engine import find_engine
from perfsuite.measure.native import load_engine_library, native_fields
from perfsuite.measure.plan import LlamaPlan, dump_plan, load_plan
from perfsuite.records.own_files import own_python

#: ``llama_get_memory_breakdown(const llama_context *)`` as C++ names it.
BREAKDOWN_SYMBOL = "_Z26llama_get_memory_breakdownPK13llama_context"

#: The buffer type of interleaved weights.
REPACK_BUFFER = "CPU_REPACK"

_LIMIT_S = 300.0
_MARK = "perfsuite-engine-memory: "


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineMemory:
    """What the engine says that its buffers take, and the processor features that it was built for."""

    weights_mapped_bytes: int
    weights_repacked_bytes: int
    kv_bytes: int
    compute_bytes: int
    cpu_features: tuple[str, ...]


class _Data(ctypes.Structure):
    _fields_ = native_fields((ctypes.c_size_t, "model context compute"))


class _TreeNode(ctypes.Structure):
    _fields_ = native_fields(
        (ctypes.c_int, "colour"), (ctypes.c_void_p, "parent left right buffer_type"), (_Data, "sizes")
    )


class _Map(ctypes.Structure):
    _fields_ = native_fields(
        (ctypes.c_void_p, "compare"),
        (ctypes.c_int, "colour"),
        (ctypes.c_void_p, "root leftmost rightmost"),
        (ctypes.c_size_t, "count"),
    )


def engine_memory(plan: LlamaPlan) -> EngineMemory:
    """Open a plan's model and context in a fresh process and return what the engine reserved for them.

    Raises `MeasurementError` where the plan's engine is not the one that llama-cpp-python brings, whose structs alone
    are known; the engine has no such function; or it cannot make the context.
    """
    packaged = find_engine()
    if plan.engine_build_id != packaged.build_id:
        raise MeasurementError(
            f"{plan.library_dir}: build {plan.engine_build_id} is not the one of llama-cpp-python "
            f"({packaged.build_id}), whose structs alone are known; unset LLAMA_CPP_LIB_PATH"
        )
    plain = _ask("_account", plan)
    return EngineMemory(**{**plain, "cpu_features": tuple(plain["cpu_features"])})


def engine_cpu_features(plan: LlamaPlan) -> tuple[str, ...]:
    """Ask the engine's CPU backend in a fresh process which features it was built for and finds on this processor.

    Raises MeasurementError where the engine cannot be loaded.
    """
    return tuple(_ask("_features", plan)["cpu_features"])


def _ask(account: str, plan: LlamaPlan) -> dict[str, Any]:
    """Have a function of this module account for a plan in a process of its own; its name is `account`."""
    root = str(Path(__file__).resolve().parents[2])
    script = f"import sys; sys.path.insert(0, {root!r}); from {__name__} import tell, {account} as asked; tell(asked)"
    command = own_python("-c", script)
    try:
        child = subprocess.run(command, input=dump_plan(plan), capture_output=True, timeout=_LIMIT_S)
    except subprocess.TimeoutExpired:
        raise MeasurementError(f"{plan.gguf_path}: the engine did not open it within {_LIMIT_S:.0f} s") from None
    for line in child.stdout.decode(errors="replace").splitlines():
        if line.startswith(_MARK):
            answer: dict[str, Any] = json.loads(line[len(_MARK) :])
            if "failure" in answer:
                raise MeasurementError(f"{plan.gguf_path}: {answer['failure']}")
            return answer
    last = (child.stderr.decode(errors="replace").strip() or "it printed nothing").splitlines()[-1]
    raise MeasurementError(f"{plan.gguf_path}: the process that asks the engine ended without an answer: {last}")


def tell(account: Callable[[LlamaPlan], dict[str, Any]]) -> None:
    """Print what is asked of the engine of the plan that comes in on the standard input: in a process of its own."""
    plan = load_plan(sys.stdin.buffer.read())
    assert isinstance(plan, LlamaPlan)
    try:
        answer = account(plan)
    except PerfsuiteError as error:
        answer = {"failure": str(error)}
    print(f"{_MARK}{json.dumps(answer)}", flush=True)


def _features(plan: LlamaPlan) -> dict[str, Any]:
    library = load_engine_library(find_engine(Path(plan.library_dir)), Path(plan.cache_dir))
    return {"cpu_features": [name for name in CPU_FEATURES if getattr(library, f"ggml_cpu_has_{name}", int)()]}


def _account(plan: LlamaPlan) -> dict[str, Any]:
    llama: Any = importlib.import_module("llama_cpp.llama_cpp")
    breakdown = getattr(llama._lib, BREAKDOWN_SYMBOL, None)
    if breakdown is None or "libstdc++" not in Path("/proc/self/maps").read_text():
        raise EngineError("this build of llama.cpp does not tell its buffers' sizes (llama_get_memory_breakdown)")
    context = _context(llama, plan)
    breakdown.restype, breakdown.argtypes = _Map, (ctypes.c_void_p,)
    sizes = dict(_entries(breakdown(context), llama._lib.ggml_backend_buft_name))
    return {**_summed(sizes), **_features(plan)}


def _context(llama: Any, plan: LlamaPlan) -> Any:
    model_parameters = llama.llama_model_default_params()
    model_parameters.n_gpu_layers = plan.n_gpu_layers
    opened = llama.llama_model_load_from_file(plan.gguf_path.encode(), model_parameters)
    if not opened:
        raise EngineError("llama.cpp cannot load it")
    parameters = llama.llama_context_default_params()
    parameters.n_ctx, parameters.n_batch, parameters.n_ubatch = plan.n_ctx, plan.n_batch, plan.n_ubatch
    parameters.flash_attn_type, parameters.swa_full = int(plan.flash_attn), plan.swa_full
    parameters.type_k, parameters.type_v = (
        getattr(llama, f"GGML_TYPE_{name.upper()}") for name in (plan.type_k, plan.type_v)
    )
    context = llama.llama_init_from_model(opened, parameters)
    if not context:
        raise EngineError(f"llama.cpp cannot make a context of {plan.n_ctx} tokens")
    return context


def _entries(tree: _Map, name_of: Any) -> Iterator[tuple[str, _Data]]:
    """Walk the nodes of the map; its buffers live as long as the context, and so do their types."""
    name_of.restype, name_of.argtypes = ctypes.c_char_p, (ctypes.c_void_p,)
    ahead = [tree.root]
    while ahead:
        if address := ahead.pop():
            node = _TreeNode.from_address(address)
            yield name_of(node.buffer_type).decode(), node.sizes
            ahead += [node.left, node.right]


def _summed(sizes: Mapping[str, _Data]) -> dict[str, int]:
    return {
        "weights_mapped_bytes": sum(each.model for name, each in sizes.items() if name != REPACK_BUFFER),
        "weights_repacked_bytes": sum(each.model for name, each in sizes.items() if name == REPACK_BUFFER),
        "kv_bytes": sum(each.context for each in sizes.values()),
        "compute_bytes": sum(each.compute for each in sizes.values()),
    }

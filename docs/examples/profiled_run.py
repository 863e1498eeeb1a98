"""Runs SmolLM2-135M once on an OpenCL backend that times its own kernels, under the tracing layer.

    python docs/examples/profiled_run.py FOLDER

FOLDER holds libggml-opencl.so, as ``tools/opencl_backend.sh --profiling`` prints it. The backend leaves
cl_profiling.csv in the working directory, the layer opencl-<pid>.log; tools/compare_cl_profiling.py compares them.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import platformdirs

from perfsuite.device.machine import default_threads
from perfsuite.expectation.llama_workload import llama_workload
from perfsuite.measure.environment import environment_engine
from perfsuite.measure.launch import run_worker
from perfsuite.measure.llama_plan import llama_plan
from perfsuite.measure.opencl_backend import set_up_opencl
from perfsuite.workload.scenario import find_scenario
from perfsuite.workload.weights import materialize, resolve


def run_profiled(library: Path) -> None:
    """Run 64 tokens in and 24 out on this backend; everything it writes goes to the working directory."""
    cache_dir, engine = Path(platformdirs.user_cache_dir("perfsuite")), environment_engine()
    weights = resolve("smollm2-135m-q8_0", cache_dir=cache_dir / "models")
    opencl = replace(set_up_opencl(engine, None, cache_dir), library=library)
    plan = llama_plan(
        llama_workload(weights, find_scenario("siso"), flash_attn=not opencl.device.is_cpu),
        engine,
        gguf_path=materialize(weights, cache_dir=cache_dir / "models"),
        cache_dir=cache_dir,
        n_threads=default_threads(),
        opencl=opencl,
    )
    run_worker(plan, extra_environment=opencl.environment(Path()))


if __name__ == "__main__":
    run_profiled(Path(sys.argv[1], "libggml-opencl.so").absolute())

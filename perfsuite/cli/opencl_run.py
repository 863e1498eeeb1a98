"""The run on llama.cpp's OpenCL backend that the options of a subcommand describe."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path

import platformdirs

from perfsuite.device.profile import Profile, find_local_profile
from perfsuite.device.threads import default_threads
from perfsuite.expectation.cases import LlamaWorkload, llama_workload
from perfsuite.measure.launch import environment_engine
from perfsuite.measure.llama_plan import llama_plan
from perfsuite.measure.opencl_backend import OpenClBackend
from perfsuite.measure.plan import LlamaPlan
from perfsuite.workload.scenario import find_scenario
from perfsuite.workload.weights import Weights, materialize, resolve


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenClRun:
    """What runs, where, and how."""

    profile: Profile
    workload: LlamaWorkload
    backend: OpenClBackend
    plan: LlamaPlan
    cache_dir: Path


def named_weights(options: argparse.Namespace) -> Weights:
    """Return the weights that ``--model`` names; nothing is made yet.

    Raises
    ------
    PerfsuiteError
        There are none of that name.
    """
    return resolve(options.model, cache_dir=_cache_dir() / "models")


def opencl_run(options: argparse.Namespace, weights: Weights) -> OpenClRun:
    """Set up the device that the options choose, and plan one process with all layers on it.

    Flash attention, unless it is asked for, is off where the device is a processor, which compiles it for 20 s.

    Raises
    ------
    PerfsuiteError
        There is no such device or scenario, or no backend for the engine.
    """
    from perfsuite.measure.opencl_setup import set_up_opencl  # starts a process, and needs what few installs have

    profile, scenario = find_local_profile(options.device), find_scenario(options.scenario)
    cache_dir, engine = _cache_dir(), environment_engine()
    backend = set_up_opencl(engine, options.opencl_platform or profile.opencl_platform, cache_dir)
    flash_attn = not backend.device.is_cpu if options.flash_attn is None else options.flash_attn == "on"
    workload = llama_workload(weights, scenario, flash_attn=flash_attn)
    plan = llama_plan(
        workload,
        engine,
        gguf_path=materialize(weights, cache_dir=cache_dir / "models"),
        cache_dir=cache_dir,
        n_threads=options.threads or default_threads(),
        opencl=backend,
    )
    return OpenClRun(profile=profile, workload=workload, backend=backend, plan=plan, cache_dir=cache_dir)


def _cache_dir() -> Path:
    return Path(platformdirs.user_cache_dir("perfsuite"))

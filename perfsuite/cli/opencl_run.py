"""The run of llama.cpp that the options of a subcommand describe, on the processor or an OpenCL device."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from typing import TYPE_CHECKING

from perfsuite.cli.kept_folders import user_cache
from perfsuite.device.profile import find_profile
from perfsuite.expectation.llama_workload import LlamaWorkload
from perfsuite.expectation.workload_request import WorkloadRequest
from perfsuite.measure.board.protocol import Board
from perfsuite.measure.llama_plan import llama_plan, with_files
from perfsuite.measure.plan import LlamaPlan
from perfsuite.workload.scenario import find_scenario
from perfsuite.workload.weights import Weights, resolve

if TYPE_CHECKING:
    from perfsuite.measure.opencl_backend import OpenClBackend


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineRun:
    """What runs, and how: one process, with all layers on the backend where there is one."""

    workload: LlamaWorkload
    plan: LlamaPlan


def named_weights(options: argparse.Namespace) -> Weights:
    """Return the weights that ``--model`` names; a `PerfsuiteError` where there are none. Nothing is made yet."""
    return resolve(options.model, cache_dir=user_cache() / "models")


def opencl_backend(options: argparse.Namespace, board: Board) -> OpenClBackend:
    """Set up the OpenCL device of a board that ``--opencl-platform`` or the profile chooses.

    Raises `PerfsuiteError`: there is no such platform, no backend for the engine, or a layer does not build.
    """
    platform = options.opencl_platform or find_profile(options.device).opencl_platform
    return board.instruments.opencl_backend(board.facts().engine, platform)


def opencl_backend_of(options: argparse.Namespace, board: Board) -> OpenClBackend | None:
    """Set up what ``--backend`` asks for; `None` for the processor's backend."""
    return None if options.backend == "cpu" else opencl_backend(options, board)


def engine_run(
    options: argparse.Namespace, board: Board, opencl: OpenClBackend | None = None, *, n_repetitions: int = 1
) -> EngineRun:
    """Plan one process of what the options name, on a board.

    Flash attention, unless ``--flash-attn`` asks for it, is off where an OpenCL device is a processor, which compiles
    it for 20 s.

    Raises `PerfsuiteError`: there is no such model or scenario.
    """
    asked, weights, facts = getattr(options, "flash_attn", None), named_weights(options), board.facts()
    flash_attn = (opencl is None or not opencl.device.is_cpu) if asked is None else asked == "on"
    models_dir, scenario = user_cache() / "models", find_scenario(options.scenario)
    workload = WorkloadRequest.of(options).workload(weights, scenario, flash_attn=flash_attn, models_dir=models_dir)
    plan = llama_plan(
        workload,
        facts.engine,
        gguf_path=board.place_weights(weights),
        cache_dir=facts.cache_dir,
        n_threads=options.threads or facts.default_threads,
        opencl=opencl,
        n_repetitions=n_repetitions,
    )
    return EngineRun(workload=workload, plan=with_files(plan, workload, board, models_dir))

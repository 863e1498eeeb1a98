"""One process of the engine in a run: its plan, what it is known by, and whether its recording can be trusted."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from perfsuite.expectation.llama_workload import N_UBATCH, LlamaWorkload
from perfsuite.experiments.run_config import RunConfig
from perfsuite.measure.llama_plan import llama_plan, with_files
from perfsuite.measure.plan import LlamaPlan
from perfsuite.records.events import EngineRecord
from perfsuite.trace.samples import misaligned_evaluations


def run_plan(config: RunConfig, n_repetitions: int = 1) -> LlamaPlan:
    """Return the plan of one process of a run; its model's file is there afterwards."""
    plan = llama_plan(
        config.workload,
        config.engine,
        gguf_path=config.board.place_weights(config.workload.weights),
        cache_dir=config.board.facts().cache_dir,
        n_threads=config.n_threads,
        opencl=config.opencl,
        n_repetitions=1 if config.prompt_lengths else n_repetitions,
        prompt_lengths=config.prompt_lengths,
    )
    return replace(
        with_files(plan, config.workload, config.board, config.cache_dir / "models"),
        inject_op=config.inject_op,
        inject_ratio=config.inject_ratio,
        inject_phases=config.inject_phases,
        inject_phase_ratio=config.inject_ratio,
    )


def llama_fingerprint(config: RunConfig, engine_version: str) -> dict[str, str]:
    """Return what a run of the engine is known by: what was asked for, what the machine is, and the engine's version.

    `perfsuite.device.fingerprint` says which field is which, and what each means for a baseline.
    """
    return {
        **config.board.facts().fingerprint,
        "engine": " ".join(engine_version.split()[:4]),
        "threads": str(config.n_threads),
        **graph_settings(config),
        **(config.opencl.fingerprint if config.opencl else {}),
    }


def graph_settings(config: RunConfig) -> dict[str, str]:
    """Return the part of the fingerprint that is known before anything runs and decides which operators there are."""
    model, backend = config.workload.weights.identity, config.backend
    return {"model": model, "backend": backend, **workload_settings(config.workload)}


def workload_settings(workload: LlamaWorkload) -> dict[str, str]:
    """Return what beside the model and the scenario decides what a workload does."""
    settings = workload.settings
    return {
        "flash_attn": "on" if settings.flash_attn else "off",
        "kv_types": f"{settings.type_k}/{settings.type_v}",
        **({} if workload.n_ubatch == N_UBATCH else {"n_ubatch": str(workload.n_ubatch)}),
        **_beside(workload),
    }


def _beside(workload: LlamaWorkload) -> dict[str, str]:
    """Name what runs beside a model alone; nothing where it does, so that its baselines stay what they were."""
    rank, drafting, projector = workload.settings.lora_rank, workload.drafting, workload.projector
    return {
        **({} if rank is None else {"lora_rank": str(rank)}),
        **({} if workload.n_sequences == 1 else {"n_sequences": str(workload.n_sequences)}),
        **({} if drafting is None else {"draft": drafting.identity}),
        **({} if projector is None else {"mmproj": projector.weights.identity}),
    }


def lost_events(records: Iterable[EngineRecord]) -> str | None:
    """Say why recordings cannot be trusted, where they cannot."""
    misaligned, dropped = 0, 0
    for record in records:
        misaligned, dropped = misaligned + misaligned_evaluations(record), dropped + record.n_dropped
    if not misaligned and not dropped:
        return None
    return f"the recorder lost events ({misaligned} evaluations incomplete, {dropped} events dropped)"

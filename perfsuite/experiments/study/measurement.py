"""Measures the latencies of a study's runs, in turn, so that a slow minute is shared by all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from perfsuite.errors import PerfsuiteError
from perfsuite.expectation.llama_workload import llama_workload
from perfsuite.expectation.roofline.roofline_run import Row, RowKind
from perfsuite.expectation.roofline.sweeps import SweepPoint
from perfsuite.experiments.scenario_bench import Bench, measure_rows
from perfsuite.experiments.study.plan_file import StudyPlan, StudyRun
from perfsuite.experiments.study.token_latency import TokenLatency, over_prompts
from perfsuite.workload.model_shape import check_generates
from perfsuite.workload.scenario import find_scenario
from perfsuite.workload.weights import resolve


def study_points(plan: StudyPlan, *, models_dir: Path, n_threads: int) -> tuple[SweepPoint, ...]:
    """Return what must be measured: a workload for each run and each length of a prompt.

    A prefill takes as long whatever its tokens are, so prompts of one length are one workload.

    Raises `PerfsuiteError`: weights are unknown, a file of them is missing or broken, or a prompt and what follows it
    are longer than what a model was trained for.
    """
    return tuple(
        _point(run, n_prompt, plan, models_dir, n_threads)
        for run in plan.runs
        if run.is_measured
        for n_prompt in sorted(set(plan.prompt_lengths))
    )


def measure_latencies(
    plan: StudyPlan, points: Sequence[SweepPoint], bench: Bench, progress: Callable[[str], None]
) -> tuple[Mapping[str, TokenLatency], str]:
    """Measure `study_points` in fresh processes; return the latency of each run by its name, and the engine's version.

    Raises `MeasurementError`: a workload had too few undisturbed processes, or a worker failed.
    """
    rows, version = measure_rows(points, bench, progress)
    counts = Counter(plan.prompt_lengths)
    names = dict.fromkeys(row.sweep for row in rows)
    return {name: _latency([row for row in rows if row.sweep == name], counts) for name in names}, version


def _point(run: StudyRun, n_prompt: int, plan: StudyPlan, models_dir: Path, n_threads: int) -> SweepPoint:
    weights = resolve(run.weights, cache_dir=models_dir)
    if n_prompt + plan.n_gen > (most := weights.architecture.n_ctx_train):
        raise PerfsuiteError(
            f"study: {run.name}: a prompt of {str(n_prompt)[:40]} tokens and {str(plan.n_gen)[:40]} after it, expected "
            f"{most} in all at most, which {weights.name} was trained for"
        )
    check_generates(weights.shape, f"study: {run.name}")
    workload = llama_workload(weights, find_scenario(f"p{n_prompt}-g{plan.n_gen}"))
    return SweepPoint(sweep=run.name, setting=f"p{n_prompt}", value=n_prompt, workload=workload, n_threads=n_threads)


def _latency(rows: Sequence[Row], counts: Mapping[int, int]) -> TokenLatency:
    prefill_ns, decode_ns = (
        {int(row.value or 0): row.samples_ns for row in rows if row.kind is kind}
        for kind in (RowKind.PREFILL, RowKind.DECODE)
    )
    return over_prompts(prefill_ns, decode_ns, counts, source="measured")

"""``perfsuite study``."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from perfsuite.cli.answer import Answer, check_picture, draw, give, tell_picture
from perfsuite.cli.command_help import Commands, add_command
from perfsuite.cli.kept_folders import user_cache
from perfsuite.cli.progress import progress
from perfsuite.cli.run_options import add_answer
from perfsuite.cli.taken_device import taken_device
from perfsuite.device.machine import default_threads, usable_threads
from perfsuite.device.profile import find_profile
from perfsuite.errors import PerfsuiteError
from perfsuite.expectation.llama_workload import llama_workload
from perfsuite.expectation.roofline.roofline_run import Row, RowKind
from perfsuite.expectation.roofline.sweeps import SweepPoint
from perfsuite.experiments.scenario_bench import Bench, measure_rows
from perfsuite.experiments.study.command_tables import plan_answer, study_chart, study_parts, study_plain
from perfsuite.experiments.study.harness_scores import read_scores
from perfsuite.experiments.study.joined import join
from perfsuite.experiments.study.plan_file import StudyPlan, StudyRun, TokenLatency, read_plan
from perfsuite.records.codec import read_json
from perfsuite.records.events import Phase
from perfsuite.records.whole_file import write_json
from perfsuite.report.llama_bench_export import read_measured_phases
from perfsuite.units import NS_PER_S
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
) -> tuple[dict[str, TokenLatency], str]:
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
    return over_prompts(prefill_ns, decode_ns, counts)


def over_prompts(
    prefill_ns: Mapping[int, Sequence[int]],
    decode_ns: Mapping[int, Sequence[int]],
    counts: Mapping[int, int],
) -> TokenLatency:
    """Return the latency over prompts, of which `counts` tells how many have each length.

    A process of each length makes one sample. With c prompts of n tokens, whose prefill takes T(n) and a token after it
    t(n), an input token takes sum c T / sum c n and an output token sum c t / sum c: every prompt counts once, and each
    generates as many tokens. Times are by length of the prompt, the samples of its processes: lengths may have
    different numbers of them, of which the fewest count.
    """
    n_samples = min(len(samples) for times in (prefill_ns, decode_ns) for samples in times.values())
    n_tokens, n_prompts = sum(n * count for n, count in counts.items()), sum(counts.values())
    prefill, decode = (
        [sum(count * times[n][at] for n, count in counts.items()) / NS_PER_S for at in range(n_samples)]
        for times in (prefill_ns, decode_ns)
    )
    return TokenLatency(
        prefill_samples_s=tuple(each / n_tokens for each in prefill),
        decode_samples_s=tuple(each / n_prompts for each in decode),
        source="measured",
    )


def known_latencies(plan: StudyPlan, earlier: Path | None) -> dict[str, TokenLatency]:
    """Return what need not be measured, by name of the run; an earlier study counts for runs without their own.

    Raises `PerfsuiteError`: a file cannot be read, or has no latency of prefill and decode.
    """
    todo = "name what perfsuite study wrote"
    known = {} if earlier is None else read_json(earlier, _EarlierStudy, PerfsuiteError, todo).latencies
    own = {run.name: _of_run(run) for run in plan.runs if not run.is_measured}
    return {run.name: known[run.name] for run in plan.runs if run.name in known} | own


@dataclass(frozen=True, slots=True, kw_only=True)
class _EarlierStudy:
    latencies: Mapping[str, TokenLatency]


def _of_run(run: StudyRun) -> TokenLatency:
    """Take prefill with the gather of its embeddings, as a study measures it."""
    if run.latency is not None:
        return run.latency
    assert run.run_file is not None
    found = read_measured_phases(run.run_file)
    prefill_ns, decode_ns = (found.samples_ns.get(phase, ()) for phase in (Phase.PREFILL, Phase.DECODE))
    if not prefill_ns or not decode_ns or not found.scenario.n_prompt:
        raise PerfsuiteError(f"{run.run_file}: has no valid prefill and decode; run both phases again")
    embedding_ns = found.samples_ns.get(Phase.EMBEDDING) or (0,) * len(prefill_ns)
    wholes_ns = map(sum, zip(prefill_ns, embedding_ns, strict=False))
    return TokenLatency(
        prefill_samples_s=tuple(each / found.scenario.n_prompt / NS_PER_S for each in wholes_ns),
        decode_samples_s=tuple(each / NS_PER_S for each in decode_ns),
        source=str(run.run_file),
    )


def add_parser(commands: Commands) -> None:
    """Add the subcommand."""
    parser = add_command(
        commands,
        "study",
        about="""
        Shows a table, the Pareto frontier with its knee, and the Harmonic Quantization score H_Q.
        lm-evaluation-harness computes the accuracies beforehand. A file takes about a minute; let nothing else run.
        """,
        examples={"perfsuite study plan.toml --output=study.json --plot=study.svg": "measure and draw"},
        see=("docs/study.md",),
    )
    parser.add_argument("plan", type=Path, metavar="PLAN", help="TOML file, as docs/study.md describes")
    parser.add_argument("--dry-run", action="store_true", help="check the plan and list what it measures")
    parser.add_argument("--from", dest="source", type=Path, metavar="FILE", help="latencies of an earlier --output")
    answer = add_answer(parser)
    answer.add_argument("--output", type=Path, metavar="FILE", help="write the study as JSON")
    answer.add_argument("--plot", type=Path, metavar="FILE", help="draw a picture (.svg)")
    parser.set_defaults(run=_study)


def _study(options: argparse.Namespace) -> int:
    check_picture(options.plot)
    plan = read_plan(options.plan)
    scores = read_scores(plan)
    known = known_latencies(plan, options.source)
    n_threads = plan.n_threads or default_threads()
    unknown = replace(plan, runs=tuple(run for run in plan.runs if run.name not in known))
    points = study_points(unknown, models_dir=user_cache() / "models", n_threads=n_threads)
    if points and n_threads > (usable := usable_threads()):
        told = f"{options.plan}: threads is {str(n_threads)[:40]}"
        raise PerfsuiteError(f"{told}, expected 1 to {usable}, the processors that may be used")
    if options.dry_run:
        sources = {run.name: known.get(run.name) for run in plan.runs}
        give(plan_answer(sources, len(points), plan.n_processes), options)
        return 0
    measured, engine = _measured(plan, points, options) if points else ({}, "")
    latencies = {run.name: (known | measured)[run.name] for run in plan.runs}
    study = join(plan, scores, latencies)
    plain = study_plain(study, latencies, engine)
    if options.output is not None:
        write_json(options.output, plain, PerfsuiteError)
    if options.plot is not None:
        chart = study_chart(study)
        draw(chart, options.plot)
        tell_picture(options, options.plot, chart.title)
    give(Answer(parts=lambda: study_parts(study), plain=lambda: plain), options)
    return 0


def _measured(
    plan: StudyPlan, points: tuple[SweepPoint, ...], options: argparse.Namespace
) -> tuple[dict[str, TokenLatency], str]:
    profile = find_profile(plan.device)
    with taken_device(profile, "study", options) as taken, progress("study", options) as told:
        board = taken.board
        bench = Bench(engine=board.facts().engine, profile=profile, board=board, n_processes=plan.n_processes)
        return measure_latencies(plan, points, bench, told.step)

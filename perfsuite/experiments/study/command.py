"""``perfsuite study``: seconds of a token against accuracy, over models and their quantisations."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from perfsuite.cli.answer import Answer, check_picture, draw, give, show, tell_picture
from perfsuite.cli.command_help import Commands, add_command
from perfsuite.cli.kept_folders import user_cache
from perfsuite.cli.progress import progress
from perfsuite.cli.run_options import add_answer
from perfsuite.cli.taken_device import taken_device
from perfsuite.device.profile import find_local_profile
from perfsuite.device.threads import default_threads, usable_threads
from perfsuite.errors import PerfsuiteError
from perfsuite.experiments.scenario_bench import Bench
from perfsuite.experiments.study.answer import study_plain
from perfsuite.experiments.study.command_tables import plan_parts, study_parts
from perfsuite.experiments.study.joined import Study, join
from perfsuite.experiments.study.latencies import known_latencies
from perfsuite.experiments.study.measurement import measure_latencies, study_points
from perfsuite.experiments.study.pictures import study_chart
from perfsuite.experiments.study.plan import StudyPlan
from perfsuite.experiments.study.plan_file import read_plan
from perfsuite.experiments.study.scores import read_scores
from perfsuite.measure.launch import environment_engine
from perfsuite.records.json_file import write_json

if TYPE_CHECKING:
    from perfsuite.expectation.roofline.sweeps import SweepPoint
    from perfsuite.experiments.study.token_latency import TokenLatency

_ABOUT = """
What an input and an output token take is measured on each file of a plan, and set against accuracies that
lm-evaluation-harness has written: a table, the Pareto frontier with its knee, and the Harmonic Quantization score H_Q.

The accuracies are read, not computed. A plan of N files takes about a minute each; let nothing else run.
"""

_EXAMPLES = {
    "perfsuite study plan.toml --dry-run": "check the plan, tell what it measures",
    "perfsuite study plan.toml --output=study.json --plot=study.png": "measure, keep and draw",
    "perfsuite study plan.toml --from=study.json --json": "again with other scores, without measuring what is known",
}


def add_parser(commands: Commands) -> None:
    """Add the subcommand."""
    parser = add_command(
        commands,
        "study",
        about=_ABOUT,
        examples=_EXAMPLES,
        writes="the study to --output and its picture to --plot, and nothing without them",
        see=("docs/study.md",),
    )
    parser.add_argument("plan", type=Path, metavar="PLAN", help="a TOML file; docs/study.md describes it")
    parser.add_argument("--dry-run", action="store_true", help="check everything, tell what would be measured")
    parser.add_argument("--from", dest="source", type=Path, metavar="FILE", help="latencies of an earlier study's JSON")
    answer = add_answer(parser)
    answer.add_argument("--output", type=Path, metavar="FILE", help="write the study as JSON")
    answer.add_argument("--plot", type=Path, metavar="FILE", help="draw accuracy against latency as PNG or SVG")
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
        show(*plan_parts({run.name: known.get(run.name) for run in plan.runs}, len(points), plan.n_processes))
        return 0
    measured, engine = _measured(plan, points, options) if points else ({}, "")
    latencies = {run.name: (known | measured)[run.name] for run in plan.runs}
    _tell(join(plan, scores, latencies), latencies, engine, options)
    return 0


def _measured(
    plan: StudyPlan, points: tuple[SweepPoint, ...], options: argparse.Namespace
) -> tuple[dict[str, TokenLatency], str]:
    profile = find_local_profile(plan.device)
    engine, cache_dir = environment_engine(), user_cache()
    bench = Bench(engine=engine, profile=profile, cache_dir=cache_dir, n_processes=plan.n_processes)
    with taken_device(profile, "study", options), progress("study", options) as told:
        latencies, named = measure_latencies(plan, points, bench, told.step)
    return dict(latencies), named


def _tell(study: Study, latencies: Mapping[str, TokenLatency], engine: str, options: argparse.Namespace) -> None:
    plain = study_plain(study, latencies, engine)
    if options.output is not None:
        write_json(options.output, plain, PerfsuiteError)
    if options.plot is not None:
        chart = study_chart(study)
        draw(chart, options.plot)
        tell_picture(options, options.plot, chart.title)
    give(Answer(parts=lambda: study_parts(study), plain=lambda: plain), options)

"""``perfsuite study``."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from perfsuite.cli.answer import Answer, check_picture, draw, give, tell_picture
from perfsuite.cli.command_help import Commands, add_command
from perfsuite.cli.kept_folders import user_cache
from perfsuite.cli.progress import progress
from perfsuite.cli.run_options import add_answer
from perfsuite.cli.taken_device import taken_device
from perfsuite.device.profile import find_profile
from perfsuite.device.threads import default_threads, usable_threads
from perfsuite.errors import PerfsuiteError
from perfsuite.experiments.scenario_bench import Bench
from perfsuite.experiments.study.command_tables import plan_answer, study_chart, study_parts, study_plain
from perfsuite.experiments.study.harness_scores import read_scores
from perfsuite.experiments.study.joined import Study, join
from perfsuite.experiments.study.measurement import measure_latencies, study_points
from perfsuite.experiments.study.plan_file import StudyPlan, StudyRun, read_plan
from perfsuite.experiments.study.token_latency import TokenLatency
from perfsuite.records.events import Phase
from perfsuite.records.whole_file import write_json
from perfsuite.report.llama_bench_export import read_measured_phases
from perfsuite.units import NS_PER_S

if TYPE_CHECKING:
    from perfsuite.expectation.roofline.sweeps import SweepPoint


def known_latencies(plan: StudyPlan, earlier: Path | None) -> dict[str, TokenLatency]:
    """Return what need not be measured, by name of the run; an earlier study counts for runs without their own.

    Raises `PerfsuiteError`: a file cannot be read, or has no latency of prefill and decode.
    """
    known = {} if earlier is None else _of_study(earlier)
    own = {run.name: _of_run(run) for run in plan.runs if not run.is_measured}
    return {**{run.name: known[run.name] for run in plan.runs if run.name in known}, **own}


_TODO = "name what perfsuite study wrote"


def _of_run(run: StudyRun) -> TokenLatency:
    """Take prefill with the gather of its embeddings, as a study measures it."""
    if (given := run.latency) is not None:
        times_s = (given.prefill_s_per_token,), (given.decode_s_per_token,)
        return TokenLatency(prefill_samples_s=times_s[0], decode_samples_s=times_s[1], source="given")
    assert run.run_file is not None
    path = run.run_file
    found = read_measured_phases(path)
    prefill_ns, decode_ns = (found.samples_ns.get(phase, ()) for phase in (Phase.PREFILL, Phase.DECODE))
    if not prefill_ns or not decode_ns or not found.scenario.n_prompt:
        raise PerfsuiteError(f"{path}: has no valid prefill and decode; run both phases again")
    embedding_ns = found.samples_ns.get(Phase.EMBEDDING) or (0,) * len(prefill_ns)
    wholes_ns = map(sum, zip(prefill_ns, embedding_ns, strict=False))
    return TokenLatency(
        prefill_samples_s=tuple(each / found.scenario.n_prompt / NS_PER_S for each in wholes_ns),
        decode_samples_s=tuple(each / NS_PER_S for each in decode_ns),
        source=str(path),
    )


def _of_study(path: Path) -> Mapping[str, TokenLatency]:
    try:
        plain = json.loads(path.read_text(encoding="utf-8"))
        return {
            name: TokenLatency(
                prefill_samples_s=tuple(map(float, each["prefill_samples_s"])),
                decode_samples_s=tuple(map(float, each["decode_samples_s"])),
                source=_text(each["source"]),
            )
            for name, each in plain["latencies"].items()
        }
    except OSError as error:
        raise PerfsuiteError(f"{path}: cannot be read ({error.strerror}); {_TODO}") from error
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        raise PerfsuiteError(f"{path}: is not a study ({type(error).__name__}: {error}); {_TODO}") from error


def _text(plain: object) -> str:
    """Return what can be written again: a lone surrogate, which JSON may hold, raises UnicodeError, a ValueError."""
    text = str(plain)
    text.encode()
    return text


_ABOUT = """
Shows a table, the Pareto frontier with its knee, and the Harmonic Quantization score H_Q. lm-evaluation-harness
computes the accuracies beforehand. A file takes about a minute; let nothing else run.
"""

_EXAMPLES = {
    "perfsuite study plan.toml --output=study.json --plot=study.png": "measure and draw",
}


def add_parser(commands: Commands) -> None:
    """Add the subcommand."""
    parser = add_command(
        commands,
        "study",
        about=_ABOUT,
        examples=_EXAMPLES,
        see=("docs/study.md",),
    )
    parser.add_argument("plan", type=Path, metavar="PLAN", help="TOML file, as docs/study.md describes")
    parser.add_argument("--dry-run", action="store_true", help="check the plan and list what it measures")
    parser.add_argument("--from", dest="source", type=Path, metavar="FILE", help="latencies of an earlier --output")
    answer = add_answer(parser)
    answer.add_argument("--output", type=Path, metavar="FILE", help="write the study as JSON")
    answer.add_argument("--plot", type=Path, metavar="FILE", help="draw a picture, PNG or SVG")
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
    _tell(join(plan, scores, latencies), latencies, engine, options)
    return 0


def _measured(
    plan: StudyPlan, points: tuple[SweepPoint, ...], options: argparse.Namespace
) -> tuple[dict[str, TokenLatency], str]:
    profile = find_profile(plan.device)
    with taken_device(profile, "study", options) as taken, progress("study", options) as told:
        board = taken.board
        bench = Bench(engine=board.facts().engine, profile=profile, board=board, n_processes=plan.n_processes)
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

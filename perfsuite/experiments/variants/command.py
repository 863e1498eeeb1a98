"""``perfsuite variants``."""

from __future__ import annotations

import argparse
from dataclasses import asdict

from perfsuite.cli.answer import Answer, Sheet, give
from perfsuite.cli.command_help import Commands, add_command
from perfsuite.cli.kept_folders import user_cache
from perfsuite.cli.progress import progress
from perfsuite.cli.run_options import add_answer, add_subject, check_least, effort_group
from perfsuite.cli.taken_device import taken_device
from perfsuite.device.profile import find_profile
from perfsuite.errors import PerfsuiteError
from perfsuite.expectation.speculation import check_vocabularies
from perfsuite.expectation.timing.engine_times import EngineTimes
from perfsuite.experiments.variants.measurement import (
    AXES,
    N_PAIRS,
    VariantBench,
    VariantPoint,
    VariantRow,
    VariantSummary,
    by_calibration,
    by_ceilings,
    measure_variants,
    summarize,
    variant_points,
)
from perfsuite.measure.ceiling_store import board_calibration, measured_ceilings
from perfsuite.report.exports.markdown_text import table
from perfsuite.units import format_change, format_ns
from perfsuite.workload.model_shape import check_generates
from perfsuite.workload.weights import resolve

_MODEL, _DRAFT = "smollm2-360m-q8_0", "smollm2-135m-q8_0"


def add_parser(commands: Commands) -> None:
    """Add the subcommand."""
    parser = add_command(
        commands,
        "variants",
        about="""
        Each variant takes turns with a plain run of the same model; forecast and measurement are ratios to it. With a
        draft, TPOT is the round's time over the tokens that it yields.
        """,
        examples={"perfsuite variants --axis=lora --axis=kv --markdown": "two axes, as a table for a document"},
        see=("docs/forecasting.md", "perfsuite held-out"),
    )
    subject = add_subject(parser, "device", f"model={_MODEL}", "threads")
    subject.add_argument("--draft", default=_DRAFT, metavar="MODEL", help=f"draft model (default {_DRAFT})")
    text = "what to vary; repeatable (default: all)"
    subject.add_argument("--axis", action="append", choices=tuple(AXES), help=text)
    text = f"pairs for each point (default {N_PAIRS})"
    effort_group(parser).add_argument("--pairs", type=int, default=N_PAIRS, metavar="N", help=text)
    add_answer(parser).add_argument("--markdown", action="store_true", help="print Markdown tables")
    parser.set_defaults(run=_variants)


def _variants(options: argparse.Namespace) -> int:
    profile = find_profile(options.device)
    check_least(options, "threads", "pairs")
    points = _points(options)
    with taken_device(profile, "variants", options) as taken, progress("variants", options) as told:
        bench = VariantBench(
            board=taken.board,
            profile=profile,
            n_threads=options.threads or taken.board.facts().default_threads,
            models_dir=user_cache() / "models",
            n_pairs=options.pairs,
        )
        calibration = board_calibration(bench.board, bench.n_threads, user_cache())
        if is_calibrated := calibration is not None:
            forecast = by_calibration(EngineTimes(calibration))
        else:
            forecast = by_ceilings(measured_ceilings(bench.board, bench.n_threads))
        rows = measure_variants(points, forecast, bench, told.step)
    summaries, cells = tuple(summarize(rows)), [_cells(row, is_calibrated=is_calibrated) for row in rows]
    sentences = [_sentence(each, is_calibrated=is_calibrated) for each in summaries]
    if options.markdown and not options.json:
        print("\n".join([table(_HEAD, cells), *(f"- {each}" for each in sentences)]))
        return 0
    figures = [{**asdict(row), "error_ratio": row.error_ratio, "is_calibrated": is_calibrated} for row in rows]
    plain = {"rows": figures, "summaries": [asdict(each) for each in summaries]}
    give(Answer(parts=lambda: (Sheet(_HEAD, cells), *sentences), plain=lambda: plain), options)
    return 0


def _points(options: argparse.Namespace) -> tuple[VariantPoint, ...]:
    models_dir = user_cache() / "models"
    weights, draft = (resolve(name, cache_dir=models_dir) for name in (options.model, options.draft))
    axes = tuple(dict.fromkeys(options.axis or AXES))
    check_generates(weights.shape, f"--model={options.model}")
    if "draft" in axes:
        check_vocabularies(options.draft, draft.architecture, weights.architecture)
    points = tuple(variant_points(weights, draft, axes))
    if not all(point.workload.is_analytical for point in points):
        raise PerfsuiteError(f"--model={options.model}: its graph is not known, so that nothing forecasts it")
    return points


_HEAD = ("axis", "point", "latency", "forecast", "measured", "interval", "error", "forecast time", "time", "error")


def _cells(row: VariantRow, *, is_calibrated: bool) -> tuple[str, ...]:
    interval = f"{row.lower_ratio:.3f} to {row.upper_ratio:.3f}"
    times = (format_ns(row.expected_ns), format_ns(row.measured_ns), format_change(1.0 + row.absolute_error_ratio))
    return (
        *(row.axis, row.setting, row.latency.upper(), f"{row.forecast_ratio:.3f}", f"{row.measured_ratio:.3f}"),
        *(interval, format_change(1.0 + row.error_ratio)),
        *(times if is_calibrated else ("-", times[1], "-")),
    )


def _sentence(summary: VariantSummary, *, is_calibrated: bool) -> str:
    times = f", of the times {summary.mean_absolute_error_ratio:.1%}" if is_calibrated else ""
    return (
        f"{summary.axis}, {summary.latency.upper()}: mean error of the ratios {summary.mean_error_ratio:.1%}{times}, "
        f"over {summary.n_rows} points"
    )

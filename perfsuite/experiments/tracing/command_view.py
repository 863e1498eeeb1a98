"""``perfsuite trace view``: a recording as a graph, as a timeline, or in figures."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

from perfsuite.cli.answer import Answer, check_picture, draw, give
from perfsuite.cli.command_help import Commands, Parser, add_command
from perfsuite.cli.given_paths import check_paths
from perfsuite.cli.progress import remarks
from perfsuite.cli.run_options import add_answer, check_least
from perfsuite.errors import PerfsuiteError
from perfsuite.experiments.engine_graph import traced_cost
from perfsuite.records.engine_trace import EngineTrace, TraceRecorder
from perfsuite.records.whole_file import write_whole_bytes
from perfsuite.report.graph.picture import dot_text, graph_svg
from perfsuite.report.graph.tables import graph_tables, plain_graphs
from perfsuite.report.graph.view import FIRST_LAYERS, GraphView, graph_view
from perfsuite.report.statistics.charts import crossover_chart, statistics_chart
from perfsuite.report.statistics.tables import crossover_table, plain_crossover, plain_statistics, statistics_tables
from perfsuite.report.timeline.perfetto import write_perfetto
from perfsuite.report.timeline.summary import plain_timeline, timeline_lines, timeline_summary, timeline_tables
from perfsuite.trace.recording import read_recording
from perfsuite.trace.statistics.crossover import crossover
from perfsuite.trace.statistics.statistics_view import trace_statistics

_TOP = 10
_RUN_HELP = "folder of 'perfsuite trace', or its file"

#: What writes a timeline, by the end of the file's name.
_PERFETTO_SUFFIXES = (".pftrace", ".perfetto-trace")


def view_parser() -> Parser:
    """Return the parser of ``trace view``."""
    parser = add_command(
        None,
        "perfsuite trace view",
        summary="show a recording",
        about="Nothing is run or judged.",
        examples={
            "perfsuite trace view graph recording --output=graph.svg": "operators, and what waits for what",
            "perfsuite trace view timeline recording --output=timeline.pftrace": "for ui.perfetto.dev",
        },
        see=("docs/trace-views.md",),
    )
    views = parser.add_subparsers(required=True, metavar="graph|timeline|statistics")
    shows = "operators in order, and what waits for what"
    graph = _view(views, "graph", _graph, shows, n_runs="+")
    graph.add_argument("--graph", metavar="NAME|N", help="decode, prefill or a number (default: the commonest decode)")
    graph.add_argument(
        "--metric",
        default="time",
        metavar="NAME",
        help="what colours show: time, bandwidth, or a counter (default time)",
    )
    text = "layers shown in full, such as 0,1,5, or all (default 0,1)"
    graph.add_argument("--layers", metavar="LIST", help=text)
    graph.add_argument("--output", type=Path, metavar="FILE", help="draw a picture: .dot or .svg")
    timeline = _view(views, "timeline", _timeline, "everything on one clock", n_runs=1)
    text = "write .pftrace, which ui.perfetto.dev opens"
    timeline.add_argument("--output", type=Path, metavar="FILE", help=text)
    statistics = _view(
        views, "statistics", _statistics, "statistics of tokens, operators, threads and experts", n_runs=1
    )
    text = "the same work on a device, to compare"
    statistics.add_argument("--against", type=Path, metavar="RUN", help=text)
    statistics.add_argument("--output", type=Path, metavar="FILE", help="draw time over size (.svg)")
    return parser


def _view(
    views: Commands, name: str, view: Callable[[argparse.Namespace], None], shows: str, *, n_runs: int | str
) -> argparse.ArgumentParser:
    parser = add_command(
        views,
        name,
        summary=f"show {shows}",
        examples={f"perfsuite trace view {name} recording --top=5": "a folder of 'perfsuite trace'"},
    )
    parser.add_argument("runs", type=Path, nargs=n_runs, metavar="RUN", help=_RUN_HELP)
    add_answer(parser)
    parser.add_argument("--top", type=int, default=_TOP, metavar="N", help=f"rows of each table (default {_TOP})")
    parser.set_defaults(run=_show, view=view)
    return parser


def _show(options: argparse.Namespace) -> int:
    check_least(options, "top")
    check_paths(options)
    options.view(options)
    return 0


def _graph(options: argparse.Namespace) -> None:
    check_picture(options.output, ".dot")
    views = [_graph_view(options, path) for path in options.runs]
    if options.output is not None:
        text = dot_text(views) if options.output.suffix.lower() == ".dot" else graph_svg(views)
        write_whole_bytes(options.output, text.encode(), PerfsuiteError)
    give(Answer(parts=lambda: graph_tables(views, options.top), plain=lambda: plain_graphs(views)), options)


def _graph_view(options: argparse.Namespace, path: Path) -> GraphView:
    return graph_view(
        read_recording(path),
        graph=options.graph,
        metric=options.metric,
        layers=FIRST_LAYERS if options.layers is None else _layers(options.layers),
        title=None if len(options.runs) == 1 else path.stem,
    )


def _layers(text: str) -> tuple[int, ...] | None:
    if text == "all":
        return None
    try:
        return tuple(int(each) for each in text.split(","))
    except ValueError:
        raise PerfsuiteError(f"--layers={text}: expected numbers by commas, such as 0,1,5, or all") from None


def _timeline(options: argparse.Namespace) -> None:
    trace, output = read_recording(options.runs[0]), options.output
    if output is not None:
        if output.suffix not in _PERFETTO_SUFFIXES:
            accepted = " or ".join(_PERFETTO_SUFFIXES)
            raise PerfsuiteError(f"--output={output}: expected {accepted}, which ui.perfetto.dev opens")
        write_perfetto(trace, output)
    summary = timeline_summary(trace)
    answer = Answer(
        parts=lambda: [*timeline_lines(summary), *timeline_tables(summary, options.top)],
        plain=lambda: plain_timeline(summary),
    )
    give(answer, options)
    if output is None and not options.json:
        remarks("trace", options).remark("--output=timeline.pftrace writes it for ui.perfetto.dev")


def _statistics(options: argparse.Namespace) -> None:
    check_picture(options.output)
    trace = read_recording(options.runs[0])
    if options.against is not None:
        _crossover(options, trace)
        return
    statistics = trace_statistics(trace, traced_cost)
    if options.output is not None:
        draw(statistics_chart(statistics, name=options.runs[0].stem), options.output)
    parts, plain = lambda: statistics_tables(statistics, options.top), lambda: plain_statistics(statistics)
    give(Answer(parts=parts, plain=plain), options)


def _crossover(options: argparse.Namespace, cpu: EngineTrace) -> None:
    device = read_recording(options.against)
    if cpu.recorder is TraceRecorder.OPENCL:
        raise PerfsuiteError(f"{options.runs[0]}: is of a device; expected the processor's run, --against the device's")
    if device.recorder is not TraceRecorder.OPENCL:
        recorder = device.recorder.value
        raise PerfsuiteError(f"--against={options.against}: is of the {recorder} recorder; expected one of opencl")
    found = crossover(cpu, device)
    if not found:
        raise PerfsuiteError(f"--against={options.against}: shares no operator with {options.runs[0]}")
    if options.output is not None:
        draw(crossover_chart(found, name=options.runs[0].stem), options.output)
    give(Answer(parts=lambda: [crossover_table(found)], plain=lambda: plain_crossover(found)), options)

"""``perfsuite roofline``: a device's ceilings, and where phases and operators stand under them."""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING

import platformdirs

from perfsuite.cli.roofline_published import published_plain, show_published
from perfsuite.device.profile import find_profile
from perfsuite.device.threads import default_threads, usable_threads
from perfsuite.errors import PerfsuiteError
from perfsuite.expectation.roofline.ceiling import CPU
from perfsuite.expectation.roofline.sweep_subject import SweepSubject
from perfsuite.expectation.roofline.sweeps import SWEEPS, base_point, sweep_points
from perfsuite.measure.launch import environment_engine

if TYPE_CHECKING:
    from perfsuite.cli.commands import Commands
    from perfsuite.expectation.roofline.point import Point
    from perfsuite.expectation.roofline.roofline_run import RooflineRun
    from perfsuite.records.llama_bench import BenchRun
    from perfsuite.verdict.roofline.recording import RooflineRequest

_DEFAULT_WEIGHTS = "smollm2-135m-q8_0"
_STORE = Path(".perfsuite") / "rooflines"


def add_parser(commands: Commands) -> None:
    """Add the subcommand."""
    parser = commands.add_parser(
        "roofline",
        help="ceilings of a device, and where phases and operators stand under them",
        description="Measure a device's ceilings and place the phases and operators of a workload under them; with "
        "--sweep, series of workloads. What was measured is kept in .perfsuite/rooflines. Let nothing else run.",
    )
    parser.add_argument("--device", default="host", help="device profile (default host)")
    parser.add_argument(
        "--model", default=_DEFAULT_WEIGHTS, metavar="PATH|NAME", help=f"GGUF or name (default {_DEFAULT_WEIGHTS})"
    )
    parser.add_argument("--scenario", default="siso", metavar="NAME", help="scenario without a sweep (default siso)")
    parser.add_argument(
        "--sweep", action="append", metavar="NAME", help=f"a sweep, repeatable, or all: {', '.join(SWEEPS)}"
    )
    parser.add_argument("--long", action="store_true", help="sweep lengths and sizes of real use, which take hours")
    parser.add_argument("--threads", type=int, metavar="N", help="threads of the engine (default: physical cores)")
    parser.add_argument("--replicates", type=int, default=5, metavar="N", help="fresh processes each (default 5)")
    parser.add_argument("--opencl-platform", metavar="NAME", help="OpenCL platform, by a part of its name")
    parser.add_argument("--bounds", action="store_true", help="hold the ceilings against other programs, too")
    parser.add_argument("--from", dest="source", type=Path, metavar="FILE", help="show a stored run, measure nothing")
    parser.add_argument("--again", type=Path, metavar="FILE", help="tell whether an earlier run of the same agrees")
    parser.add_argument("--llama-bench", type=Path, metavar="FILE", help="place what llama-bench -o json wrote, too")
    parser.add_argument("--output", type=Path, metavar="FILE", help="where the run is kept")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="draw into PNG or SVG files whose names begin so")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--published", action="store_true", help="show the devices that papers published instead")
    parser.set_defaults(run=_roofline)


def _roofline(options: argparse.Namespace) -> int:
    if options.published:
        if options.json:
            print(json.dumps(published_plain(), indent=1))
        else:
            show_published()
        return 0
    _check(options)
    run = _stored(options.source) if options.source else _measured(options)
    _tell(run, options)
    return 0


def _check(options: argparse.Namespace) -> None:
    """Refuse what would end minutes of measuring in an error."""
    for name in ("threads", "replicates"):
        value = getattr(options, name)
        if value is not None and value < 1:
            raise PerfsuiteError(f"--{name}={value}: expected 1 or more")
    if options.plot is not None:
        from perfsuite.report.plots.formats import format_of  # matplotlib is slow to import

        format_of(options.plot)
    for name, path in (("llama-bench", options.llama_bench), ("again", options.again)):
        if path is not None and not path.is_file():
            raise PerfsuiteError(f"--{name}={path}: no such file")
    _read_early(options)


def _read_early(options: argparse.Namespace) -> None:
    """Read what is shown beside the run, so that a file that is none is told now."""
    from perfsuite.records.llama_bench_file import read_llama_bench

    if options.llama_bench is not None:
        read_llama_bench(options.llama_bench)
    if options.again is not None:
        _stored(options.again)


def _stored(path: Path) -> RooflineRun:
    from perfsuite.verdict.roofline.stored_run import read_roofline

    return read_roofline(path)


def _measured(options: argparse.Namespace) -> RooflineRun:
    """Measure, and keep what was measured before anything is made of it."""
    from perfsuite.verdict.roofline.recording import record_roofline
    from perfsuite.verdict.roofline.stored_run import write_roofline

    request = _request(options)
    path = options.output or _STORE / f"{datetime.now(timezone.utc):%Y%m%dT%H%M%S}-{os.getpid()}.json"
    _check_output(path)
    started_s = time.monotonic()
    run = record_roofline(
        request,
        lambda text: print(f"roofline: {time.monotonic() - started_s:.0f} s, {text}", file=sys.stderr, flush=True),
    )
    write_roofline(run, path)
    print(f"roofline: {time.monotonic() - started_s:.0f} s, kept in {path}", file=sys.stderr)
    return run


def _check_output(path: Path) -> None:
    """Refuse a file that could not be written when everything is measured."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise PerfsuiteError(f"{path}: cannot be written ({error.strerror})") from None
    if path.is_dir() or not os.access(path.parent, os.W_OK):
        raise PerfsuiteError(f"{path}: cannot be written; name a file in a folder that is yours")


def _request(options: argparse.Namespace) -> RooflineRequest:
    from perfsuite.measure.ceiling_survey import thread_counts
    from perfsuite.measure.device_survey import SurveyRequest
    from perfsuite.verdict.roofline.measurement import Bench
    from perfsuite.verdict.roofline.recording import RooflineRequest

    profile, cache_dir = find_profile(options.device), Path(platformdirs.user_cache_dir("perfsuite"))
    n_threads = options.threads or default_threads()
    names = _sweeps(options.sweep or ())
    counts = thread_counts(usable_threads()) if "threads" in names else ()
    subject = SweepSubject(
        weights=options.model,
        n_threads=n_threads,
        thread_counts=counts,
        is_long=options.long,
        cache_dir=cache_dir / "models",
    )
    return RooflineRequest(
        survey=SurveyRequest(
            profile=profile,
            n_threads=n_threads,
            thread_counts=thread_counts(usable_threads()),
            cache_dir=cache_dir,
            log_dir=_STORE,
            opencl_platform=options.opencl_platform,
        ),
        base=() if names else (base_point(subject, options.scenario),),
        sweeps=sweep_points(names, subject),
        with_bounds=options.bounds,
        bench=Bench(engine=environment_engine(), profile=profile, cache_dir=cache_dir, n_processes=options.replicates),
    )


def _sweeps(names: Sequence[str]) -> tuple[str, ...]:
    """Return each named sweep once; all of them where that was said.

    Raises
    ------
    PerfsuiteError
        A sweep is unknown.
    """
    for name in names:
        if name not in (*SWEEPS, "all"):
            raise PerfsuiteError(f"--sweep={name}: unknown; accepted are {', '.join(SWEEPS)}, all")
    return tuple(SWEEPS) if "all" in names else tuple(dict.fromkeys(names))


def _tell(run: RooflineRun, options: argparse.Namespace) -> None:
    from perfsuite.cli.roofline_json import agreement_plain, roofline_plain
    from perfsuite.cli.roofline_pictures import draw_roofline
    from perfsuite.cli.roofline_tables import show_agreement, show_roofline

    benched = _bench_points(run, options)
    earlier = None if options.again is None else _stored(options.again)
    if options.json:
        plain = roofline_plain(run, benched)
        again = {} if earlier is None else {"again": agreement_plain(earlier, run)}
        print(json.dumps({**plain, **again}, indent=1))
    else:
        show_roofline(run, benched)
    if earlier is not None and not options.json:
        show_agreement(earlier, run)
    if options.plot is not None:
        for path, title in draw_roofline(run, options.plot):
            print(f"{path}: {title}", file=sys.stderr if options.json else sys.stdout)


def _bench_points(run: RooflineRun, options: argparse.Namespace) -> tuple[Point, ...]:
    if options.llama_bench is None:
        return ()
    from perfsuite.expectation.roofline.bench_work import bench_points
    from perfsuite.records.llama_bench_file import read_llama_bench

    cache_dir = Path(platformdirs.user_cache_dir("perfsuite")) / "models"
    by_threads: dict[int, list[BenchRun]] = {}
    for each in read_llama_bench(options.llama_bench):
        by_threads.setdefault(each.n_threads, []).append(each)
    return tuple(
        point
        for n_threads, alike in by_threads.items()
        for point in bench_points(alike, run.survey.of(CPU, n_threads), cache_dir=cache_dir)
    )

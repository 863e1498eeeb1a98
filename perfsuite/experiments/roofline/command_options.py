"""The options of ``perfsuite roofline``, and what is refused before anything is measured."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from pathlib import Path

from perfsuite.cli.answer import check_picture
from perfsuite.cli.run_options import add_answer, add_shared, add_subject, check_least, effort_group
from perfsuite.errors import PerfsuiteError
from perfsuite.expectation.roofline.sweeps import SWEEPS

#: What says how to measure, and so nothing to a run that is stored.
_MEASURING = ("sweep", "long", "threads", "opencl_platform", "bounds", "output")


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add every option."""
    subject = add_subject(parser, "device", "model")
    subject.add_argument("--scenario", metavar="NAME", help="scenario without a sweep (default siso)")
    known = ", ".join((*SWEEPS, "all"))
    subject.add_argument("--sweep", action="append", metavar="NAME,..", help=f"sweeps, by commas or repeated: {known}")
    subject.add_argument("--long", action="store_true", help="sweep lengths and sizes of real use, which take hours")
    add_shared(subject, "threads", "opencl-platform")
    effort = effort_group(parser)
    effort.add_argument("--replicates", type=int, default=5, metavar="N", help="fresh processes each (default 5)")
    effort.add_argument("--bounds", action="store_true", help="hold the ceilings against other programs, too")
    _add_sources(parser.add_argument_group("what is known already"))
    answer = add_answer(parser)
    answer.add_argument("--output", type=Path, metavar="FILE", help="where the run is kept")
    answer.add_argument("--plot", type=Path, metavar="FILE", help="draw into PNG or SVG files whose names begin so")


def _add_sources(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--from", dest="source", type=Path, metavar="FILE", help="show a stored run, measure nothing")
    group.add_argument("--again", type=Path, metavar="FILE", help="tell whether an earlier run of the same agrees")
    group.add_argument("--llama-bench", type=Path, metavar="FILE", help="place what llama-bench -o json wrote, too")
    text = "what llama-bench ran, where its file does not tell"
    group.add_argument("--llama-bench-model", metavar="PATH|NAME", help=text)
    group.add_argument("--published", action="store_true", help="show the devices that papers published instead")


def check_options(options: argparse.Namespace) -> None:
    """Refuse what would end minutes of measuring in an error."""
    check_least(options, "threads", "replicates")
    check_picture(options.plot)
    for name, path in (("llama-bench", options.llama_bench), ("again", options.again)):
        if path is not None and not path.is_file():
            raise PerfsuiteError(f"--{name}={path}: no such file")
    for name in _MEASURING if options.source is not None else ():
        if getattr(options, name):
            raise PerfsuiteError(f"--{name.replace('_', '-')}: says nothing beside --from; leave one of them out")
    sweep_names(options.sweep or ())
    if options.sweep and options.scenario is not None:
        raise PerfsuiteError(f"--scenario={options.scenario}: sweeps have scenarios of their own; leave it out")


def sweep_names(texts: Iterable[str]) -> tuple[str, ...]:
    """Return each named sweep once; all of them where that was said.

    Raises `PerfsuiteError`: a sweep is unknown.
    """
    names = [name.strip() for text in texts for name in text.split(",")]
    for name in names:
        if name not in (*SWEEPS, "all"):
            raise PerfsuiteError(f"--sweep={name}: unknown; accepted are {', '.join(SWEEPS)}, all")
    return tuple(SWEEPS) if "all" in names else tuple(dict.fromkeys(names))

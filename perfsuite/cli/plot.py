"""``perfsuite plot``."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from pathlib import Path

from perfsuite.cli.answer import Answer, Records, check_picture, draw, give
from perfsuite.cli.command_help import Commands, add_command
from perfsuite.errors import PerfsuiteError, meant
from perfsuite.expectation.paper import figures
from perfsuite.expectation.roofline.published import published_roofs
from perfsuite.records.chart import Chart
from perfsuite.report.roofline_charts import devices_chart


def _published() -> Chart:
    return devices_chart(None, published_roofs())


#: By name: what a picture shows in a few words, and what computes it.
PICTURES: Mapping[str, tuple[str, Callable[[], Chart]]] = {
    "life-fig3": ("operations by operator over prompts and variants", figures.figure_3),
    "life-fig4": ("t_c / t_m over peak and bandwidth", figures.figure_4),
    "life-fig5": ("time to first token over both efficiencies", figures.figure_5),
    "life-fig6": ("chunked prefill: dispatches, traffic, operations", figures.figure_6),
    "life-fig7": ("traffic of decode steps over tokens, by variant", figures.figure_7),
    "life-fig8": ("padding of decode's products to a tile", figures.figure_8),
    "life-fig9": ("inline LoRA on one product over prompts and ranks", figures.figure_9),
    "roofline-published": ("roofs of the devices that papers published", _published),
}


def add_parser(commands: Commands) -> None:
    """Add the subcommand."""
    add_command(
        commands,
        "plot",
        about="Commands that measure draw their own results with --plot.",
        examples={"perfsuite plot --list": "the pictures", "perfsuite plot life-fig3 -o figure.svg": "one of them"},
        see=("docs/forecasting.md", "docs/roofline.md"),
        options=[
            ("pictures PICTURE", "names of pictures; see --list", {"nargs": "*"}),
            ("--list", "list the pictures"),
            ("-o --output PATH", "file to write (default PICTURE.svg)", Path),
        ],
        run=_plot,
    )


def _plot(options: argparse.Namespace) -> int:
    if options.list:
        listed = tuple((name, shows) for name, (shows, _) in PICTURES.items())
        return give(Answer.of(Records(columns=("picture", "shows"), rows=listed), empty=""), options)
    pictures = options.pictures
    for name in pictures:
        if name not in PICTURES:
            accepted = ", ".join(PICTURES) + meant(name, PICTURES)
            raise PerfsuiteError(f"picture {name!r} is unknown; accepted are {accepted}")
    if not pictures:
        raise PerfsuiteError(f"PICTURE: none named, expected one of {', '.join(PICTURES)}")
    if options.output is not None and len(pictures) > 1:
        raise PerfsuiteError(f"--output={options.output}: one file for {len(pictures)} pictures; name one picture")
    check_picture(options.output)
    drawn = []
    for name in dict.fromkeys(pictures):
        chart, path = PICTURES[name][1](), options.output or Path(f"{name}.svg")
        draw(chart, path)
        drawn.append({"picture": name, "file": str(path), "title": chart.title})
    return give(Answer(parts=[f"{each['file']}: {each['title']}" for each in drawn], plain=drawn), options)

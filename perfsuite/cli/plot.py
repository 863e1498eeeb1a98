"""``perfsuite plot``."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from perfsuite.cli.answer import Answer, Records, check_picture, draw, give
from perfsuite.cli.command_help import Commands, add_command, add_json
from perfsuite.errors import PerfsuiteError, meant
from perfsuite.expectation.paper import figures
from perfsuite.expectation.roofline.published import published_roofs
from perfsuite.records.chart import Chart
from perfsuite.report.roofline_charts import devices_chart


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """One picture: what it shows in a few words, and what computes it."""

    shows: str
    chart: Callable[[], Chart]


def _published() -> Chart:
    return devices_chart(None, published_roofs())


PICTURES: Mapping[str, Picture] = MappingProxyType(
    {
        "life-fig3": Picture(shows="operations by operator over prompts and variants", chart=figures.figure_3),
        "life-fig4": Picture(shows="t_c / t_m over peak and bandwidth", chart=figures.figure_4),
        "life-fig5": Picture(shows="time to first token over both efficiencies", chart=figures.figure_5),
        "life-fig6": Picture(shows="chunked prefill: dispatches, traffic, operations", chart=figures.figure_6),
        "life-fig7": Picture(shows="traffic of decode steps over tokens, by variant", chart=figures.figure_7),
        "life-fig8": Picture(shows="padding of decode's products to a tile", chart=figures.figure_8),
        "life-fig9": Picture(shows="inline LoRA on one product over prompts and ranks", chart=figures.figure_9),
        "roofline-published": Picture(shows="roofs of the devices that papers published", chart=_published),
    }
)


def add_parser(commands: Commands) -> None:
    """Add the subcommand."""
    parser = add_command(
        commands,
        "plot",
        about="Commands that measure draw their own results with --plot.",
        examples={"perfsuite plot --list": "the pictures", "perfsuite plot life-fig3 -o figure.svg": "one of them"},
        see=("docs/forecasting.md", "docs/roofline.md"),
    )
    parser.add_argument("pictures", nargs="*", metavar="PICTURE", help="names of pictures; see --list")
    parser.add_argument("--list", action="store_true", help="list the pictures")
    parser.add_argument("-o", "--output", type=Path, metavar="PATH", help="file to write (default PICTURE.svg)")
    add_json(parser)
    parser.set_defaults(run=_plot)


def _plot(options: argparse.Namespace) -> int:
    if options.list:
        listed = tuple((name, picture.shows) for name, picture in PICTURES.items())
        give(Answer.of(Records(columns=("picture", "shows"), rows=listed), empty=""), options)
        return 0
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
        chart, path = PICTURES[name].chart(), options.output or Path(f"{name}.svg")
        draw(chart, path)
        drawn.append({"picture": name, "file": str(path), "title": chart.title})
    give(Answer(parts=lambda: [f"{each['file']}: {each['title']}" for each in drawn], plain=lambda: drawn), options)
    return 0

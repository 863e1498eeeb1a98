"""The pictures of a roofline run, one file each."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from perfsuite.cli.answer import draw
from perfsuite.expectation.roofline.published import published_devices
from perfsuite.expectation.roofline.roofline_run import RooflineRun, RowKind
from perfsuite.records.chart import Chart
from perfsuite.report.bandwidth_chart import bandwidth_chart
from perfsuite.report.memory_chart import memory_chart
from perfsuite.report.roofline_charts import operators_chart, sweep_chart
from perfsuite.report.roofline_devices import devices_chart


def draw_roofline(run: RooflineRun, path: Path) -> Iterator[tuple[Path, str]]:
    """Draw every picture that the run has material for; yield each file with the picture's title.

    ``roofline.svg`` gives ``roofline-depth.svg``, ``roofline-bandwidth.svg`` and so on.
    """
    for name, chart in _charts(run):
        target = path.with_name(f"{path.stem}-{name}{path.suffix}")
        draw(chart, target)
        yield target, chart.title


def _charts(run: RooflineRun) -> Iterator[tuple[str, Chart]]:
    phases = [row for row in run.rows if row.kind is not RowKind.OPERATOR]
    for sweep in dict.fromkeys(row.sweep for row in phases):
        yield sweep, sweep_chart(run, sweep)
    if len(phases) < len(run.rows):
        yield "operators", operators_chart(run)
    if run.memory:
        yield "memory", memory_chart(run.memory)
    yield "bandwidth", bandwidth_chart(run.survey)
    published = [(device.name, roof) for device in published_devices() if (roof := device.roof) is not None]
    yield "devices", devices_chart((run,), published)

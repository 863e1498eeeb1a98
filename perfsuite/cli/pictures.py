"""The pictures that ``perfsuite plot`` knows, by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from perfsuite.expectation.paper import figures
from perfsuite.expectation.roofline.published import published_devices
from perfsuite.records.chart import Chart
from perfsuite.report.roofline_devices import devices_chart


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """One picture: what it shows in a few words, and what computes it."""

    shows: str
    chart: Callable[[], Chart]


def _published() -> Chart:
    return devices_chart((), [(device.name, device.roof) for device in published_devices() if device.roof is not None])


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

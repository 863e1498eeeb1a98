"""The subcommands: what each is called, what for, and in which module it is.

To add one, add a line to `COMMANDS` and write ``perfsuite/cli/<name>.py`` with ``add_parser(commands)``, which calls
`perfsuite.cli.command_help.add_command`, and answers with `perfsuite.cli.answer.give`; that of an experiment is
``command.py`` in its folder. Nothing else: the module is imported only when the subcommand is run, its line below is
what ``perfsuite --help`` says of it, and completion finds it by itself.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from enum import Enum
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from perfsuite.cli.command_help import Commands


class Purpose(str, Enum):
    """What a subcommand is for: the headings of ``perfsuite --help``, in their order."""

    LOOK = "Look at runs and keep references"
    WATCH = "Watch and trace"
    MEASURE = "Measure a device"
    FORECAST = "Forecast"
    TRUST = "Know what the verdicts are worth"
    PREPARE = "Prepare and set up"


@dataclass(frozen=True, slots=True)
class Command:
    """A subcommand; its module is ``perfsuite.cli.<name>``, with ``_`` for each ``-``, or that of its experiment."""

    name: str
    purpose: Purpose
    #: What it does, in one line without a full stop.
    summary: str

    def load(self, commands: Commands) -> argparse.ArgumentParser:
        """Import the subcommand's module and let it add its parser; return that."""
        import_module(self.module).add_parser(commands)
        return commands.choices[self.name]

    @property
    def module(self) -> str:
        """The module that has ``add_parser``."""
        place = _OF_EXPERIMENTS.get(self.name, "")
        return f"perfsuite.experiments.{place}" if place else f"perfsuite.cli.{self.name.replace('-', '_')}"


#: The modules of the commands of experiments, below `perfsuite.experiments`.
_OF_EXPERIMENTS = {
    "calibrate": "calibration.command",
    "certify": "certificate.command",
    "experts": "experts.command",
    "fidelity": "fidelity.command",
    "held-out": "held_out.command",
    "kernels": "kernels.command",
    "offload": "offload.command",
    "overhead": "overhead.command",
    "policy": "shapes.command_policy",
    "roofline": "roofline.command",
    "study": "study.command",
    "sweep": "shapes.command_sweep",
    "trace": "tracing.command",
}

#: In the order in which ``perfsuite --help`` lists them below the heading of their purpose.
COMMANDS = (
    Command("report", Purpose.LOOK, "show a run as one HTML page, alone or beside others"),
    Command("baseline", Purpose.LOOK, "record, show, compare and approve stored baselines"),
    Command("engines", Purpose.LOOK, "keep the builds of llama.cpp that made the baselines, and hand them on"),
    Command("export", Purpose.LOOK, "write runs for pytest-benchmark, JUnit, GitHub, Prometheus and others"),
    Command("history", Purpose.LOOK, "show how cases moved over all runs, and where they changed"),
    Command("llama-bench", Purpose.LOOK, "exchange measurements with llama.cpp's llama-bench"),
    Command("plot", Purpose.LOOK, "draw a picture of a table or a comparison as PNG or SVG"),
    Command("trace", Purpose.WATCH, "record what a program does, and look at it"),
    Command("live", Purpose.WATCH, "show each token of a run as it comes, with a forecast of the next ones"),
    Command("kernels", Purpose.WATCH, "show the kernels that llama.cpp launches on an OpenCL device"),
    Command("experts", Purpose.WATCH, "show how the experts of an architecture are reused"),
    Command("nightly", Purpose.MEASURE, "run a matrix of boards, models and scenarios, and merge what comes of it"),
    Command("roofline", Purpose.MEASURE, "measure a device's ceilings, and what stands where under them"),
    Command("sweep", Purpose.MEASURE, "measure an operation at each size of a range, against the tiling model"),
    Command("policy", Purpose.MEASURE, "choose tiles and backends by shape, and check the gain"),
    Command("offload", Purpose.MEASURE, "sweep over the number of layers that an OpenCL device computes"),
    Command("study", Purpose.MEASURE, "set the latency of a token against accuracy, over a suite of files"),
    Command("calibrate", Purpose.FORECAST, "measure single operators, so that forecasts know this device"),
    Command("forecast", Purpose.FORECAST, "forecast TTFT and TPOT of a request on a device"),
    Command("held-out", Purpose.FORECAST, "compare forecasts with measurements that the calibration never saw"),
    Command("reproduce", Purpose.FORECAST, "compute the tables of a paper beside what it prints"),
    Command("certify", Purpose.TRUST, "measure false alarms and power of the verdicts on this device"),
    Command("fidelity", Purpose.TRUST, "hold the suite's own timings against independent ground truths"),
    Command("overhead", Purpose.TRUST, "measure what the recorders cost, in interleaved pairs"),
    Command("devices", Purpose.PREPARE, "list, show and add the devices that a run can be on, and get one ready"),
    Command("architectures", Purpose.PREPARE, "list the catalogue of architectures"),
    Command("synthesize", Purpose.PREPARE, "write a GGUF file of true shapes and random weights"),
    Command("prompts", Purpose.PREPARE, "choose a subset of prompts with the lengths of the whole"),
    Command("completion", Purpose.PREPARE, "print the script with which a shell completes these commands"),
)


def summary_of(name: str) -> str:
    """Return what a subcommand does, in one line."""
    return next(command.summary for command in COMMANDS if command.name == name)

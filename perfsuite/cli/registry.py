"""The subcommands: what each is called, what for, in which module it is, and what it does.

To add one, write a module that has ``add_parser(commands)``, which calls `perfsuite.cli.command_help.add_command`, and
answers with `perfsuite.cli.answer.give`; and give it a row here. It is imported only when the subcommand is run.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


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
    """A subcommand."""

    name: str
    purpose: Purpose
    #: The module that has ``add_parser``, below ``perfsuite``.
    module: str
    #: What it does, in one line without a full stop.
    summary: str


#: By purpose: the name, the module and what it does, in the order in which ``perfsuite --help`` lists them.
_TABLE = {
    Purpose.LOOK: (
        ("baseline", "cli.baseline", "store and compare the times that later runs are judged by"),
        ("engines", "cli.engines", "keep the llama.cpp builds that made the baselines"),
        ("export", "cli.export", "write runs for pytest-benchmark, JUnit, GitHub and others"),
        ("history", "cli.history", "show how cases changed over all runs"),
        ("llama-bench", "cli.llama_bench", "exchange measurements with llama.cpp's llama-bench"),
        ("plot", "cli.plot", "draw a paper's figure, or the rooflines of published devices"),
        ("report", "cli.report", "show one run or several as an HTML page"),
    ),
    Purpose.WATCH: (
        ("experts", "experiments.experts.command", "show how often an MoE model reuses its experts"),
        ("kernels", "experiments.kernels.command", "show the OpenCL kernels that llama.cpp launches"),
        ("live", "cli.live", "show each token of a run as it is generated, with a forecast"),
        ("trace", "experiments.tracing.command", "record where a program's time goes"),
    ),
    Purpose.MEASURE: (
        ("bisect", "experiments.bisect.command", "find the build of llama.cpp that changed a case's time"),
        ("compare", "cli.compare", "compare two builds of llama.cpp in pairs"),
        ("ingest", "cli.ingest", "judge results that came back from a device farm"),
        ("nightly", "cli.nightly", "run a plan of boards, models and scenarios"),
        ("offload", "experiments.offload.command", "measure speed by the number of layers on the OpenCL device"),
        ("policy", "experiments.shapes.command_policy", "choose tiles and backends by shape"),
        ("roofline", "experiments.roofline.command", "measure a device's ceilings and place workloads under them"),
        ("study", "experiments.study.command", "compare quantisations by latency and accuracy"),
        ("sweep", "experiments.shapes.command_sweep", "measure one operation over a range of sizes"),
    ),
    Purpose.FORECAST: (
        ("calibrate", "experiments.calibration.command", "measure single operators, for better forecasts"),
        ("forecast", "cli.forecast", "forecast TTFT and TPOT of a request on a device"),
        ("held-out", "experiments.held_out.command", "check forecasts against workloads outside the calibration"),
        ("reproduce", "cli.reproduce", "compute a paper's tables and show the differences"),
        ("variants", "experiments.variants.command", "check forecasts of LoRA, chunks, batches, KV types and drafts"),
    ),
    Purpose.TRUST: (
        ("certify", "experiments.certificate.command", "measure how often verdicts on this device are wrong"),
        ("fidelity", "experiments.fidelity.command", "check the suite's timings against independent ones"),
        ("overhead", "experiments.overhead.command", "measure what each recorder costs"),
    ),
    Purpose.PREPARE: (
        ("architectures", "cli.architectures", "list the models of the catalogue"),
        ("bundle", "cli.bundle", "compile llama.cpp and the worker for a device into one folder"),
        ("completion", "cli.completion", "print the completion script of a shell"),
        ("devices", "cli.devices", "list, add, check and set up devices"),
        ("prompts", "cli.prompts", "choose a subset of prompts that has the same lengths"),
        ("synthesize", "cli.synthesize", "write a GGUF file with real shapes and random weights"),
    ),
}

COMMANDS = tuple(Command(name, purpose, *row) for purpose, rows in _TABLE.items() for name, *row in rows)


def summary_of(name: str) -> str:
    """Return what a subcommand does, in one line."""
    return next(command.summary for command in COMMANDS if command.name == name)

"""``perfsuite trace --opencl``: run any program under the OpenCL layer, and say where its device's time went."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from perfsuite.cli.answer import Answer, Part, give
from perfsuite.cli.kept_folders import user_cache
from perfsuite.cli.taken_device import taken_device
from perfsuite.device.profile import find_profile
from perfsuite.device.work_folder import work_folder
from perfsuite.errors import MeasurementError, PerfsuiteError, masked_command
from perfsuite.measure.environment import environment_opencl_layers
from perfsuite.measure.opencl_backend import find_opencl_layers, layer_environment
from perfsuite.measure.traced_program import run_traced
from perfsuite.records.opencl_log_file import read_opencl_log
from perfsuite.records.whole_file import write_json
from perfsuite.report.opencl_summary import (
    OpenClSummary,
    count_lines,
    gap_table,
    idle_line,
    kernel_line,
    kernel_table,
    plain_process,
    summarize,
)

#: What is written beside the logs.
JSON_NAME = "trace.json"

#: Raised whenever a key of the JSON changes its meaning.
SCHEMA = 3

_LOGS = "opencl-*.log"

_WITHOUT_COMMAND = "enqueued no OpenCL command that was recorded"
_WITHOUT_LOG = (
    "left no log: it used no OpenCL, its loader knows no OPENCL_LAYERS, it took away the variables or the folder that "
    "the log needs, or it is still running"
)


def trace_opencl(options: argparse.Namespace, program: Sequence[str]) -> int:
    """Run a program with the layer in it; return its exit code, or 2 where its log cannot be read."""
    if not program:
        raise PerfsuiteError("trace: no command to run; expected it at the end, as in trace --opencl -- COMMAND")
    profile = find_profile(options.device)
    with _log_folder(options.output) as folder, taken_device(profile, "trace", options) as taken:
        layer = find_opencl_layers(user_cache()).tracing
        sys.stdout.flush()
        environment = layer_environment(layer, folder, inherited=environment_opencl_layers())
        exit_code = run_traced(program, {**taken.environment, **environment})
        summaries, unreadable = _read(folder, options.top)
    plain = {
        "schema": SCHEMA,
        "command": list(masked_command(program)),
        "exit_code": exit_code,
        "processes": [plain_process(each) for each in summaries],
        "unreadable": unreadable,
    }
    give(Answer(parts=lambda: _parts(summaries, plain, options.top), plain=lambda: plain), options)
    problems = list(unreadable)
    if options.output is not None:
        try:
            write_json(Path(options.output) / JSON_NAME, plain, MeasurementError)
        except MeasurementError as error:  # the program may have done anything to the folder
            problems.append(str(error))
    for problem in problems:
        print(f"perfsuite: error: {problem}", file=sys.stderr)
    return exit_code or (2 if problems else 0)


@contextmanager
def _log_folder(named: str | None) -> Iterator[Path]:
    """Give the folder where the logs go: the user's own, which must hold no other run's, or one that goes away."""
    if named is None:
        with work_folder() as folder:
            yield folder
        return
    output = Path(named)
    try:
        output.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise MeasurementError(f"--output={output}: cannot be made ({error.strerror})") from None
    if any(output.glob(_LOGS)):
        raise PerfsuiteError(f"--output={output}: holds the logs of another run; name another folder")
    if os.path.lexists(output / JSON_NAME):
        raise PerfsuiteError(f"--output={output}: holds a {JSON_NAME} already; name another folder")
    yield output.resolve()


def _read(folder: Path, n_gaps: int) -> tuple[list[OpenClSummary], list[str]]:
    """Return the processes in the order in which they enqueued, and what is wrong with logs that cannot be read."""
    traces, unreadable = [], []
    for path in sorted(folder.glob(_LOGS)):
        try:
            traces.append(read_opencl_log(path))
        except MeasurementError as error:
            unreadable.append(str(error))
    traces.sort(key=lambda each: (int(each.commands["host_start_ns"][0]) if each.commands.size else 0, each.pid))
    return [summarize(each, n_gaps=n_gaps) for each in traces], unreadable


def _parts(summaries: Sequence[OpenClSummary], plain: Mapping[str, Any], n_top: int) -> Iterator[Part]:
    busy = [each for each in summaries if each.n_commands or not each.is_complete]
    if not busy and not plain["unreadable"]:
        yield f"perfsuite: {plain['command'][0]} {_WITHOUT_COMMAND if summaries else _WITHOUT_LOG}"
    for summary in busy:
        yield from count_lines(summary)
        if summary.kernels:
            yield from ("", kernel_line(summary, n_top), kernel_table(summary, n_top))
        for device in summary.devices:
            yield from ("", idle_line(device, summary))
            if device.longest_gaps:
                yield gap_table(device)

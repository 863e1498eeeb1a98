"""``perfsuite trace``."""

from __future__ import annotations

import argparse
import importlib
import shutil
from collections.abc import Sequence
from pathlib import Path

from perfsuite.cli.command_help import Commands, Parser, add_command
from perfsuite.cli.run_options import add_answer, add_shared, check_least
from perfsuite.device.profile import find_profile
from perfsuite.errors import PerfsuiteError, meant
from perfsuite.experiments.recorder_traces import RECORDERS
from perfsuite.records.trace_levels import DEFAULT_LEVELS, TraceLevel, parse_levels

_TOP = 10

#: What may stand where a program would, with the module of the parser that gets the words behind it.
WORDS = {"view": "command_view", "agree": "command_ebpf", "check": "command_ebpf", "install-helper": "command_ebpf"}

_USAGE = """perfsuite trace [--trace LEVELS] [options] -- COMMAND...
       perfsuite trace [--trace LEVELS] [options] --pid N
       perfsuite trace [--recorder NAME] [options] --model NAME
       perfsuite trace --opencl [--json] [--top N] [--output DIR] -- COMMAND...
       perfsuite trace view graph|timeline|statistics RUN...
       perfsuite trace agree [--model NAME]
       perfsuite trace check
       sudo perfsuite trace install-helper"""


def add_parser(commands: Commands) -> None:
    """Add the subcommand."""
    parser = add_command(
        commands,
        "trace",
        usage=_USAGE,
        about="""
        Follows an unmodified llama.cpp program with eBPF, or one of the suite's own runs with any recorder. eBPF needs
        shared libraries of llama.cpp, with headers nearby or in their checkout. Nothing is judged: 'pytest
        --device=host --perf-trace' does that.
        """,
        examples={
            "perfsuite trace --model=smollm2-135m-q8_0": "a run of the suite, without privileges",
            "perfsuite trace --trace=operator,counters -- llama-cli -m model.gguf -p Hello": "a program",
        },
        writes="the trace, into .perfsuite/traces/TIME or --output",
        exits={1: "'agree': recorders differ; 'check': something is missing"},
        see=("docs/tracing.md", "docs/trace-views.md", "docs/ebpf.md", "docs/opencl-tracing.md"),
    )
    whom = parser.add_argument_group("program")
    whom.add_argument("--pid", type=int, metavar="N", help="running llama.cpp process")
    add_shared(whom, "model=")
    whom.add_argument(
        "program",
        nargs=argparse.REMAINDER,
        metavar="COMMAND",
        help="program with its arguments, after '--'; its output comes first, its exit code is that of 'trace'",
    )
    _add_recording(parser.add_argument_group("recording"))
    own = parser.add_argument_group("a run of the suite")
    add_shared(own, "device", "scenario", "threads", "opencl-platform")
    text = "limit the run's memory, such as 900M, so that experts are paged"
    own.add_argument("--memory-limit", metavar="BYTES", help=text)
    told = add_answer(parser, json_help="print JSON")
    told.add_argument("--output", metavar="DIR", help="folder of the trace (default .perfsuite/traces/<time>)")
    told.add_argument("--top", type=int, default=_TOP, metavar="N", help=f"rows of each table (default {_TOP})")
    parser.set_defaults(run=_trace)


def _add_recording(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--opencl", action="store_true", help="record every OpenCL command, with a layer in the loader")
    text = "recorder of a run of the suite (default preload)"
    choices = tuple(each.name for each in RECORDERS.values() if each.traced_as)
    group.add_argument("--recorder", choices=choices, help=text)
    text = "eBPF levels, by commas: token, graph, operator, ends, threads, counters, experts (default the first three)"
    group.add_argument("--trace", metavar="LEVELS", help=text)
    text = "reduce the levels while decode is slower than this"
    group.add_argument("--trace-floor", type=float, metavar="TOKENS/S", help=text)
    group.add_argument(
        "--counters", metavar="NAMES", help="hardware counters, by commas (default: those that the machine has)"
    )
    group.add_argument("--buffer", choices=("ring", "perf"), help="buffer of eBPF (default ring)")
    group.add_argument("--duration", type=float, metavar="S", help="stop after this time, s")
    text = "folder of ggml.h, if it is not near the libraries"
    group.add_argument("--ggml-include", type=Path, metavar="DIR", help=text)


def word_parser(word: str) -> Parser:
    """Return the parser of one of the `WORDS`."""
    module = importlib.import_module(f"perfsuite.experiments.tracing.{WORDS[word]}")
    parser: Parser = getattr(module, f"{word.replace('-', '_')}_parser")()
    return parser


def _trace(options: argparse.Namespace) -> int:
    words = options.program
    if words and words[0] in WORDS:
        asked = word_parser(words[0]).parse_args(words[1:])
        return int(asked.run(asked))
    program = words[1:] if words[:1] == ["--"] else words
    profile = find_profile(options.device)
    if (program or options.pid is not None) and not profile.is_local:
        told = f"is reached by {profile.reach.text}, and a command or --pid is of this machine"
        raise PerfsuiteError(f"--device={options.device}: {told}; expected --model, which runs on {options.device}")
    if program and shutil.which(program[0]) is None:
        told = f"no such program here, or none that may be started{meant(program[0], WORDS)}"
        raise PerfsuiteError(f"trace: {program[0]}: {told}")
    check_least(options, "top", "threads")
    if options.output == "":
        raise PerfsuiteError("--output=: is empty; expected a folder")
    if options.opencl:
        from perfsuite.experiments.tracing.command_opencl import trace_opencl  # NumPy and the layers, as each of these

        return trace_opencl(options, program)
    _check(options, program)
    if options.model is not None:
        from perfsuite.experiments.tracing.command_run import trace_run

        return trace_run(options)
    from perfsuite.experiments.tracing.command_program import trace_pid, trace_program

    return trace_program(options, program) if program else trace_pid(options)


def _check(options: argparse.Namespace, program: Sequence[str]) -> None:
    named = [name for name, given in (("--pid", options.pid is not None), ("--model", options.model)) if given]
    whom = [*named, *(["a command"] if program else [])]
    if not whom:
        raise PerfsuiteError("trace: nobody to follow; expected -- COMMAND, --pid N or --model NAME")
    if len(whom) > 1:
        raise PerfsuiteError(f"trace: {' and '.join(whom)}; expected one of them")
    if options.pid is not None and options.pid < 1:
        raise PerfsuiteError(f"--pid={options.pid}: expected the number of a process")
    if options.recorder not in (None, "ebpf") and options.model is None:
        raise PerfsuiteError(f"--recorder={options.recorder}: is of the suite's own runs; expected --model beside it")
    _refuse_idle(options)
    if options.ggml_include is not None and not options.ggml_include.is_dir():
        raise PerfsuiteError(f"--ggml-include={options.ggml_include}: is not a folder; expected that of ggml.h")
    for name, value, most in (("--trace-floor", options.trace_floor, 1e6), ("--duration", options.duration, 1e9)):
        if value is not None and not 0.0 < value <= most:
            raise PerfsuiteError(f"{name}={value:g}: expected more than 0, and {most:g} at most")


def _refuse_idle(options: argparse.Namespace) -> None:
    is_own = options.model is not None
    is_ebpf = not is_own or options.recorder == "ebpf" or (options.recorder is None and options.trace is not None)
    counts = is_ebpf and bool(parse_levels(options.trace or DEFAULT_LEVELS, "--trace") & TraceLevel.COUNTERS)
    for name, is_of_use, needed in (
        ("trace", is_ebpf, "the recorder ebpf"),
        ("trace-floor", is_ebpf, "--trace"),
        ("buffer", is_ebpf, "--trace"),
        ("counters", counts, "--trace=counters"),
        ("duration", options.pid is not None, "--pid"),
        ("ggml-include", not is_own, "--pid or a command"),
        ("memory-limit", is_own, "--model"),
        ("opencl-platform", options.recorder == "opencl", "--recorder=opencl"),
    ):
        if getattr(options, name.replace("-", "_")) is not None and not is_of_use:
            raise PerfsuiteError(f"--{name}: nothing would be done with it; expected {needed} beside it")

"""The ``perfsuite`` command: one module a subcommand, each with `add_parser`."""

from __future__ import annotations

import argparse
import os
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from perfsuite import __version__
from perfsuite.cli import (
    baseline,
    calibrate,
    catalog,
    certify,
    experts,
    fidelity,
    forecast,
    held_out,
    kernels,
    live,
    llama_bench,
    offload,
    overhead,
    plot,
    policy,
    prompts,
    reproduce,
    roofline,
    study,
    sweep,
    synthesize,
    trace,
)
from perfsuite.errors import PerfsuiteError

#: The subcommands in the order in which the usage lists them.
_COMMANDS = (
    synthesize,
    catalog,
    overhead,
    certify,
    baseline,
    reproduce,
    plot,
    forecast,
    calibrate,
    held_out,
    roofline,
    llama_bench,
    live,
    prompts,
    study,
    fidelity,
    kernels,
    offload,
    trace,
    experts,
    sweep,
    policy,
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one subcommand; a user's mistake is one line on standard error and exit code 2."""
    options = _parser().parse_args(arguments)
    try:
        with _ended_in_order():
            status = int(options.run(options))
        sys.stdout.flush()
        return status
    except PerfsuiteError as error:
        print(f"perfsuite: error: {error}", file=sys.stderr)
        return 2
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        print("perfsuite: interrupted", file=sys.stderr)
        return 130


@contextmanager
def _ended_in_order() -> Iterator[None]:
    """Let a request to terminate unwind what is open, such as control groups and workers, instead of ending at once."""

    def end(number: int, _: object) -> None:
        raise SystemExit(128 + number)

    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        yield
        return
    signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="perfsuite", description="Performance regression of on-device LLM inference.")
    parser.add_argument("--version", action="version", version=f"perfsuite {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for command in _COMMANDS:
        command.add_parser(commands)
    return parser

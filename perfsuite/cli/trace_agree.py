"""``perfsuite trace agree``: one run under two recorders at once, and whether they saw the same."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from perfsuite.cli.agreement_tables import agreement_lines, agreement_tables, plain_agreement
from perfsuite.cli.commands import show
from perfsuite.cli.trace_run import ebpf_of, own_plan
from perfsuite.errors import PerfsuiteError
from perfsuite.verdict.recorder_agreement import recorder_agreement
from perfsuite.verdict.recorder_traces import traced_by_both


def run(arguments: Sequence[str]) -> int:
    """Compare the eBPF recorder with the callback recorder; the exit code is 1 where they saw different operators.

    Raises
    ------
    PerfsuiteError
        eBPF cannot be used here, or the model cannot be run.
    """
    options = _parser().parse_args(arguments)
    if options.threads is not None and options.threads < 1:
        raise PerfsuiteError(f"--threads={options.threads}: expected 1 or more")
    plan = own_plan(options)
    ebpf = ebpf_of(options, plan)
    print(f"trace: {Path(plan.gguf_path).stem}, {options.scenario}, both recorders", file=sys.stderr, flush=True)
    with tempfile.TemporaryDirectory(prefix="perfsuite-trace-") as folder:
        callback, outside = traced_by_both(plan, "callback", ebpf, Path(folder))
    found = recorder_agreement(outside.trace, callback.trace)
    if options.json:
        print(json.dumps(plain_agreement(found), indent=1))
    else:
        for line in agreement_lines(found):
            print(line)
        for table in agreement_tables(found):
            show(table)
    return 0 if found.is_same else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="perfsuite trace agree",
        description="Run a model once under the callback recorder and the eBPF recorder, and compare operators, their "
        "order, their number and their times.",
    )
    parser.add_argument("--device", default="host", help="device profile (default host)")
    parser.add_argument("--model", default="smollm2-135m-q8_0", metavar="PATH|NAME")
    parser.add_argument("--scenario", default="siso", metavar="NAME", help="default siso")
    parser.add_argument("--threads", type=int, metavar="N", help="threads of the engine (default: physical cores)")
    parser.add_argument("--trace", default="operator,ends", metavar="LEVELS", help="of eBPF (default operator,ends)")
    parser.add_argument("--buffer", choices=("ring", "perf"), default="ring", help="of eBPF's events (default ring)")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(trace_floor=None, counters=None)
    return parser

"""``sudo perfsuite trace install-helper``: install the one program of the suite that has privileges."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from perfsuite.cli.answer import Answer, give
from perfsuite.cli.command_help import add_command, add_json
from perfsuite.measure.ebpf_helper import install_helper


def run(arguments: Sequence[str]) -> int:
    """Install the helper, and say where and with what."""
    options = _parser().parse_args(arguments)
    installed = install_helper()
    lines = (
        *(f"note: {note}" for note in installed.notes),
        f"installed {installed.path}, with CAP_BPF and CAP_PERFMON",
    )
    plain = {"file": str(installed.path), "notes": list(installed.notes)}
    give(Answer(parts=lambda: lines, plain=lambda: plain), options)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = add_command(
        None,
        "perfsuite trace install-helper",
        summary="install the one program that needs privileges",
        about="""
        It has CAP_BPF and CAP_PERFMON: any user may then trace their own processes, and nobody else's.
        """,
        examples={"sudo perfsuite trace install-helper": "once"},
        writes="/usr/local/libexec/perfsuite/",
        see=("docs/tracing.md",),
    )
    add_json(parser)
    return parser

"""The suite's program on a device: how it is started there by a shell, and read where it answers by a line of JSON."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from typing import Any

#: With which a shell says that there is no such program, or that it cannot be run.
NO_PROGRAM = (126, 127)

#: What a device says that an earlier version has set up, by pip.
OLD_SETUP = "it was set up by an earlier version of perfsuite, in Python, by which no board is measured any more"

_COMMAND = f"""
home=$1; case $home in '~'|'~/'*) home=$HOME${{home#'~'}};; esac; shift
own="$home/bundle/current/perfsuite-worker"
if [ ! -x "$own" ] && [ -e "$home/venv" ]; then echo {shlex.quote(OLD_SETUP)} >&2; exit 127; fi
exec "$own" "$@"
"""


def suite_command(home: str, *words: str) -> tuple[str, ...]:
    """Return the command that becomes the program of a device's bundle, below the `home` of its ``[reach]``."""
    return ("sh", "-c", _COMMAND, "perfsuite", home, *words)


def last_answer(output: str) -> Mapping[str, Any] | None:
    """Return the last line that is JSON of an object; None where there is none."""
    for line in reversed(output.splitlines()):
        try:
            told = json.loads(line)
        except (ValueError, RecursionError):
            continue
        return told if isinstance(told, dict) else None
    return None

"""What the suite on a device says of itself."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from perfsuite.errors import DeviceError
from perfsuite.records.codec import rebuilt

#: What Python is given to ask an installed suite; the answer is the last line, in JSON.
QUESTION = ("-I", "-m", "perfsuite.cli.devices_installed")

#: With which a shell says that there is no such program, or that it cannot be run.
NO_PROGRAM = (126, 127)


def suite_python(home: str) -> str:
    """Return the Python of the suite on a device, below the `home` of its ``[reach]``."""
    return f"{home}/venv/bin/python"


def missing_suite(python: str) -> str:
    """Say that there is no suite: what follows 'the suite' in a message."""
    return f"is not there (no {python})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Installed:
    """An installation of the suite, as it describes itself."""

    suite_version: str
    #: The version of the plans that it reads.
    plan_schema: int
    python_version: str
    machine: str
    #: The llama.cpp that would be measured; None with the reason in `engine_problem`.
    engine_build_id: str | None
    engine_problem: str | None


def read_installed(plain: Mapping[str, Any]) -> Installed:
    """Read an answer; one of another version of the suite, which has other fields, is a `DeviceError`."""
    try:
        return rebuilt(plain, Installed)
    except ValueError:
        raise DeviceError("the suite there is of another version; run 'perfsuite devices setup' again") from None


def last_answer(output: str) -> Mapping[str, Any] | None:
    """Return the last line that is JSON of an object; None where there is none."""
    for line in reversed(output.splitlines()):
        try:
            told = json.loads(line)
        except ValueError:
            continue
        return told if isinstance(told, dict) else None
    return None

"""What a run writes beside ``run.json``: the options that say so."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from perfsuite.experiments.output_request import OutputRequest

_OFF = "off"

#: What begins the address of something that is no folder.
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")


def asked_outputs(config: pytest.Config) -> OutputRequest:
    """Return what the options ask for.

    Raises pytest.UsageError: the history is to lie at an address, which is no folder.
    """
    named: str | None = config.option.perf_history
    default = config.rootpath / ".perfsuite" / "history"
    return OutputRequest(
        writes_report=config.option.perf_report == "on",
        history_dir=None if named == _OFF else _folder(named) if named else default,
    )


def _folder(named: str) -> Path:
    if _SCHEME.match(named):
        raise pytest.UsageError(
            f"--perf-history={named}: is an address, expected a folder of this machine, mounted ones included, or 'off'"
        )
    return Path(named).absolute()

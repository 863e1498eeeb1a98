"""What the tests of the ``perfsuite`` command share."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from typing import Any

import pytest

from perfsuite.cli import main
from perfsuite.cli.answer import Answer, give

Streams = pytest.CaptureFixture[str]
Refused = Callable[[list[str]], str]


@pytest.fixture
def refused(capsys: Streams) -> Refused:
    """Run a command that must fail for a reason that a user can act on; return its one line."""

    def run(arguments: list[str]) -> str:
        capsys.readouterr()
        assert main(arguments) == 2
        out, err = capsys.readouterr()
        assert out == ""
        assert err.startswith("perfsuite: error: ")
        assert err.count("\n") == 1
        return err

    return run


def printed(answer: Answer, capsys: Streams) -> str:
    """What people read of an answer."""
    capsys.readouterr()
    give(answer, argparse.Namespace(json=False))
    return capsys.readouterr().out


def plain_of(answer: Answer) -> Any:
    """What programs read of an answer, through JSON and back."""
    return json.loads(json.dumps(answer.plain(), allow_nan=False))

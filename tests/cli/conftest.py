"""What the tests of the ``perfsuite`` command share."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from perfsuite.cli import main

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

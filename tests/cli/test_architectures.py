"""``perfsuite architectures``."""

from __future__ import annotations

from perfsuite.cli import main
from perfsuite.workload.catalog import names
from tests.command_streams import Streams


def test_the_catalogue_is_listed(capsys: Streams) -> None:
    """Every architecture of the catalogue is a row."""
    assert main(["architectures"]) == 0
    rows = capsys.readouterr().out
    assert all(name in rows for name in names())

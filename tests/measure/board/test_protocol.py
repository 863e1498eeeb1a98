"""A board says by which name it is known."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from perfsuite.measure.board.local_board import LocalBoard
from perfsuite.measure.board.protocol import board_name


def test_a_board_at_the_end_of_a_link_is_kept_by_its_identity(tmp_path: Path) -> None:
    """This machine is not: what is kept of it is that of its kind, though it has a name as well."""
    here = LocalBoard(cache_dir=tmp_path)
    name, linked = board_name(here), board_name(replace(here, is_local=False))
    facts = here.facts()
    assert (name.identity, name.hostname, name.kept_by) == (facts.identity, facts.hostname, None)
    assert (linked.identity, linked.hostname, linked.kept_by) == (facts.identity, facts.hostname, facts.identity)

"""What a board is called in records, and in what a desk keeps of it."""

from __future__ import annotations

from perfsuite.measure.board.protocol import Board
from perfsuite.records.run_origin import BoardName


def board_name(board: Board) -> BoardName:
    """Ask a board which one it is; `BoardName.kept_by` says whether what is kept of it is its own."""
    facts = board.facts()
    return BoardName(identity=facts.identity, hostname=facts.hostname, is_linked=not board.is_local)

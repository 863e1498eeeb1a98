"""Governors of a board: set there by its program, judged here."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from perfsuite.device.governors import refuse_noted, settable_governors
from perfsuite.device.machine import Conditions
from perfsuite.device.stability.governing import Taken, ask_governors
from perfsuite.device.stability.restore_file import Change
from perfsuite.errors import DeviceError
from perfsuite.measure.board.frames import understood
from perfsuite.measure.board.mirror import Mirror


@dataclass(kw_only=True)
class BoardGovernors:
    """What the program has set; all of it is given back with the link."""

    #: Asks the program.
    ask: Callable[[str, Mapping[str, Any]], Any]
    is_root: bool
    #: Those that were set for a while, within what the conditions ask for.
    _for_a_while: list[Change] = field(default_factory=list)

    def take(self, changes: Sequence[Change]) -> list[Taken]:
        """Have values written, until the link ends."""
        told = self.ask("set", {"changes": [_plain(each) for each in changes]})
        return understood(
            "set", lambda plain: [Taken(refusal=each["refusal"], read=each["read"]) for each in plain], told
        )

    def settable(self, board: Mirror) -> tuple[str, ...]:
        """Return the governors that every core offers and the user there may set."""

        def may_write(files: Sequence[Path]) -> list[bool]:
            told = self.ask("may_write", {"paths": board.paths(files)})
            return understood("may_write", lambda plain: [bool(each) for each in plain], told)

        return settable_governors(board.root, may_write)

    def set_for_a_while(self, governor: str, board: Mirror) -> None:
        """Have a governor set on all cores; `DeviceError` where a core does not take it, and all are given back."""
        notes: list[str] = []

        def take(changes: Sequence[Change]) -> list[Taken]:
            taken = self.take(changes)
            self._for_a_while += changes
            return taken

        ask_governors(Conditions(governor=governor), notes, root=board.root, take=take, is_root=self.is_root)
        try:
            refuse_noted(notes)
        except DeviceError:
            self.give_back()
            raise

    def give_back(self) -> None:
        """Have what was set for a while given back; `DeviceError` where a core does not take its own back."""
        changes, self._for_a_while = self._for_a_while, []
        if changes:
            told = self.ask("unset", {"changes": [_plain(each) for each in changes]})
            refuse_noted(understood("unset", lambda plain: [str(each) for each in plain], told))


def _plain(change: Change) -> dict[str, Any]:
    return {"path": change.path, "before": change.before, "set_to": list(change.set_to)}

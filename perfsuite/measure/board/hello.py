"""The first message to a board: who comes, with which suite, and how the board must be."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from perfsuite import __version__
from perfsuite.device.machine import NO_CONDITIONS, Conditions
from perfsuite.measure.board.holding import Claim
from perfsuite.measure.plan import SCHEMA

#: What the program there writes before its first message: whatever a login prints first is passed over.
PREAMBLE = b"\nperfsuite-agent\n"

#: How often the desk says that it is there, s, and after how much silence it counts as gone.
PING_S = 5.0
SILENCE_LIMIT_S = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Hello:
    """What the desk says first."""

    #: None has the program run plans without taking the board.
    claim: Claim | None
    conditions: Conditions = NO_CONDITIONS
    silence_limit_s: float = SILENCE_LIMIT_S
    suite_version: str = __version__
    #: Of plans and records.
    schema: int = SCHEMA

    def to_plain(self) -> dict[str, Any]:
        """Return the fields by name."""
        return asdict(self)


def own_versions() -> dict[str, Any]:
    """Return what both ends must have alike."""
    return {"suite_version": __version__, "schema": SCHEMA}


def versions_complaint(desk: Mapping[str, Any], board: Mapping[str, Any]) -> str | None:
    """Say how the suite there differs from the one here; None where both are the same."""
    if all(desk.get(name) == board.get(name) for name in own_versions()):
        return None
    told = (
        f"perfsuite {each.get('suite_version')} (plans of schema {each.get('schema')}) {where}"
        for each, where in ((board, "there"), (desk, "here"))
    )
    return ", ".join(told)


def refusal(desk: Mapping[str, Any], board: Any) -> str:
    """Say why the suite there refused the one here; a development tree may differ and have the same version."""
    told = board if isinstance(board, dict) else {}
    return versions_complaint(desk, told) or (
        f"perfsuite {told.get('suite_version')} there is not the one here, though it calls itself the same"
    )

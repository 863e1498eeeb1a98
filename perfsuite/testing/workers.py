"""Workers that are none: what a board runs is answered by functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from perfsuite.measure.board.protocol import Board
    from perfsuite.measure.board.runs import RunRequest
    from perfsuite.measure.plan import Plan, TurnsPlan


class Patch(Protocol):
    """As pytest's ``MonkeyPatch``."""

    def setattr(self, target: str, value: object) -> None:
        """Replace what is imported by that name."""


def replace_workers(patch: Patch, run: Callable[..., dict[str, Any]]) -> None:
    """Let ``run`` answer all plans; it gets the plan, `extra_environment`, and `hear` where somebody hears it."""

    def run_plan(_: Board, plan: Plan, request: RunRequest) -> dict[str, Any]:
        hearing = {} if request.hear is None else {"hear": request.hear}
        return run(plan, extra_environment=request.environment, **hearing)

    patch.setattr("perfsuite.measure.board.runs.run_plan", run_plan)


def replace_turns(patch: Patch, run_in_turns: Callable[..., tuple[dict[str, Any], dict[str, Any]]]) -> None:
    """Let ``run_in_turns`` answer all pairs; it gets both plans, and how they are run by name."""

    def run_turns(
        _: Board, plans: tuple[TurnsPlan, TurnsPlan], request: RunRequest, **how: Any
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        return run_in_turns(plans, extra_environment=request.environment, hear=request.hear, **how)

    patch.setattr("perfsuite.measure.board.runs.run_turns", run_turns)

"""The commands of a page, run one after the other; each has to end and to print as the page shows."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator

from .docs_output import mismatch
from .docs_pages import Command, Fence
from .docs_sandbox import Ran, Sandbox

#: The time that a command may take.
LIMIT_S = 120

#: A page that shows how a command ends asks for it in the next one.
_ASKS_STATUS = "echo $?"

#: What the suite says of a run that shared its processors.
_DISTURBED = re.compile(
    r"threads waited|had competition|undisturbed|not to be trusted|could not be measured|a drift of [+-]\d{2,}\."
)

_Told = Iterable[tuple[Fence, tuple[tuple[Command, frozenset[str]], ...]]]


class PageError(Exception):
    def __init__(self, command: Command, why: str, ran: Ran) -> None:
        super().__init__(f"{command.place}: $ {command.text}\n{why}\n{ran.output}")
        #: Whether the output says that something else had the processors.
        self.was_disturbed = bool(_DISTURBED.search(ran.output))


def runnable(page: _Told) -> Iterator[Command]:
    return (command for _, found in page for command, needs in found if not needs)


def run_page(
    page: _Told,
    sandbox: Sandbox,
    *,
    allowed: frozenset[str] = frozenset(),
    limit_s: float = LIMIT_S,
    listen: Callable[[Command, Ran], object] | None = None,
) -> None:
    """Run what needs no more than is allowed, and save the files that the page shows.

    Raises
    ------
    PageError
        A command ended with another status than 0 that the next one does not ask for, or printed something else.
    """
    steps = [(fence, command) for fence, found in page for command in _allowed(fence, found, allowed)]
    for number, (fence, command) in enumerate(steps):
        if command is None:
            sandbox.write(fence.file or "", fence.text)
            continue
        ran = sandbox.run(command.text, limit_s)
        if listen is not None:
            listen(command, ran)
        following = steps[number + 1][1] if number + 1 < len(steps) else None
        if ran.status and (following is None or following.text != _ASKS_STATUS):
            raise PageError(command, f"exit code {ran.status}", ran)
        if command.output and (wrong := mismatch(command.output, ran.output)):
            raise PageError(command, wrong, ran)


def _allowed(
    fence: Fence, found: tuple[tuple[Command, frozenset[str]], ...], allowed: frozenset[str]
) -> Iterator[Command | None]:
    if fence.file:
        yield None
    yield from (command for command, needs in found if needs <= allowed)

"""Where a run comes from: the command that made it, the commit that it stood on, the board that it measured."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """A commit of the sources under test."""

    #: Full, in hexadecimal.
    sha: str
    #: Whether tracked files differed from it.
    is_dirty: bool = False
    #: None on no branch.
    branch: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BoardName:
    """Which of several devices of a kind was measured."""

    #: Sixteen digits that stay with the board: a hash of its machine id or serial number.
    identity: str
    hostname: str
    #: Whether it was reached over a link. Then what is kept of it is kept by its identity; what runs on the machine
    #: itself is not, for CI machines of one kind have another identity each night and share what is kept.
    is_linked: bool = False

    @property
    def text(self) -> str:
        return f"{self.identity} ({self.hostname})" if self.hostname else self.identity

    @property
    def kept_by(self) -> str | None:
        """The identity by which baselines and series are kept apart; None of what ran on the machine itself."""
        return self.identity if self.is_linked else None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOrigin:
    """What is needed to make a run again."""

    #: Unlike that of any other run; the same for all files of one run.
    run_id: str = ""
    #: Arguments of pytest that make the same measurement again, without a choice of cases and without where to write.
    arguments: tuple[str, ...] = ()
    #: The words that chose among its cases: ``-k`` and ``-m`` with their expressions, ``--deselect=...``, node ids.
    selection: tuple[str, ...] = ()
    #: Variables that must be set for it, such as ``LLAMA_CPP_LIB_PATH``.
    environment: Mapping[str, str] = field(default_factory=dict)
    #: Of the working tree in which pytest ran, or as it was named; None where there is none.
    commit: Commit | None = None
    #: None of a run that did not keep it.
    board: BoardName | None = None

    @property
    def kept_by(self) -> str | None:
        """The identity of the board that what is kept of the run is kept by; None where machines of a kind share it."""
        return self.board.kept_by if self.board else None


NO_ORIGIN = RunOrigin()

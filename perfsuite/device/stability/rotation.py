"""Reads many files a few at a time, so that looking costs the same whatever a device has to look at."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

_Told = TypeVar("_Told")


@dataclass(frozen=True, slots=True, kw_only=True)
class Source(Generic[_Told]):
    """Something that is read whole: a zone, or the files of one cooling device."""

    #: Files that it reads; a program that is started counts as one.
    n_reads: int
    read: Callable[[], _Told]


@dataclass(slots=True, kw_only=True)
class Rotation(Generic[_Told]):
    """Sources that are read in turns; each has what it told last."""

    sources: Sequence[Source[_Told]]
    _told: dict[int, _Told] = field(default_factory=dict)
    _next: int = 0

    @property
    def told(self) -> tuple[_Told, ...]:
        """What each source told last, in their order; a source that was never read is left out."""
        return tuple(self._told[place] for place in sorted(self._told))

    def read_all(self) -> None:
        """Read every source."""
        for place, source in enumerate(self.sources):
            self._told[place] = source.read()

    def read_some(self, most_reads: int) -> None:
        """Read the next sources, one at least, of at most `most_reads` files together."""
        n_reads = 0
        for _ in self.sources:
            source = self.sources[self._next]
            if n_reads and n_reads + source.n_reads > most_reads:
                break
            self._told[self._next] = source.read()
            self._next = (self._next + 1) % len(self.sources)
            n_reads += source.n_reads

"""How much slower a case may be: by kind, by its test's marker, by an option, by the device; in this order."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from perfsuite.device.profile import DEFAULT_MARGIN_RATIO


@dataclass(frozen=True, slots=True, kw_only=True)
class KindMargins:
    """What one source says, about all kinds of cases or about some."""

    any_ratio: float | None = None
    by_kind_ratio: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))

    def find(self, kind: str) -> float | None:
        """Return the margin of a kind; what is said of the kind itself goes before what is said of all."""
        return self.by_kind_ratio.get(kind, self.any_ratio)


NOTHING_SAID = KindMargins()


@dataclass(frozen=True, slots=True, kw_only=True)
class Margins:
    """The margins of a run by their source; the most specific one that says something wins."""

    command_line: KindMargins = NOTHING_SAID
    ini: KindMargins = NOTHING_SAID
    profile: KindMargins = NOTHING_SAID

    def margin_ratio(self, kind: str, marker: float | None = None, default: float = DEFAULT_MARGIN_RATIO) -> float:
        """Return the margin of a case: command line, marker on the test, ini file, device profile, default."""
        sources = (self.command_line.find(kind), marker, self.ini.find(kind), self.profile.find(kind))
        return next((ratio for ratio in sources if ratio is not None), default)

    def unused_kinds(self, known: Collection[str]) -> tuple[str, ...]:
        """Return the kinds of which the command line speaks and that no case has, such as a misspelt one."""
        return tuple(kind for kind in self.command_line.by_kind_ratio if kind not in known)

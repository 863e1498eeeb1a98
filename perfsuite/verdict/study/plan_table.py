"""Tables of a study's plan: fields of a type, and messages that name the place, the value and what is accepted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from perfsuite.errors import PerfsuiteError

#: So much of a value is told.
_MOST_TOLD = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanTable:
    """A table of a plan, and where it stands."""

    where: str
    folder: Path
    plain: Mapping[str, Any]

    def allow(self, *names: str) -> None:
        """Refuse fields of other names."""
        unknown = [name for name in self.plain if name not in names]
        if unknown:
            raise PerfsuiteError(f"{self.where}: field {unknown[0]!r} is unknown; accepted are {', '.join(names)}")

    def reject(self, name: str, accepted: str) -> NoReturn:
        """Refuse a field's value, or that it is missing."""
        seen = f"is {repr(self.plain[name])[:_MOST_TOLD]}" if name in self.plain else "is missing"
        raise PerfsuiteError(f"{self.where}: {name} {seen}, expected {accepted}")

    def text(self, name: str, default: str | None = None) -> str:
        """Return a text that is not empty."""
        value = self.plain.get(name, default)
        return value if isinstance(value, str) and value else self.reject(name, "a text that is not empty")

    def count(self, name: str, default: int) -> int:
        """Return a whole number above 0."""
        value = self.plain.get(name, default)
        if isinstance(value, int) and not isinstance(value, bool) and value >= 1:
            return value
        return self.reject(name, "a whole number of 1 or more")

    def number(self, name: str, default: float | None, accepted: str, *, least: float, below: float) -> float:
        """Return a number of `least` or more and below `below`."""
        value = self.plain.get(name, default)
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        return float(value) if is_number and least <= value < below else self.reject(name, accepted)

    def paths(self, name: str) -> tuple[Path, ...]:
        """Return one path or several."""
        value = self.plain.get(name)
        texts = [value] if isinstance(value, str) else value
        if not isinstance(texts, list) or not texts or not all(isinstance(each, str) and each for each in texts):
            self.reject(name, "a path, or a list of paths")
        return tuple(self.folder / each for each in texts)

    def tables(self, name: str) -> tuple[PlanTable, ...]:
        """Return the tables of a list, at least one."""
        value = self.plain.get(name)
        if not isinstance(value, list) or not value or not all(isinstance(each, dict) for each in value):
            self.reject(name, f"at least one table [[{name}]]")
        return tuple(self._inner(f"{name} {number}", each) for number, each in enumerate(value, start=1))

    def table(self, name: str) -> PlanTable:
        """Return a table that must be there."""
        value = self.plain.get(name)
        return self._inner(name, value) if isinstance(value, dict) else self.reject(name, f"a table [{name}]")

    def _inner(self, place: str, plain: Mapping[str, Any]) -> PlanTable:
        return PlanTable(where=f"{self.where}: {place}", folder=self.folder, plain=plain)

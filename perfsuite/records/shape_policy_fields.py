"""Fields of a policy's JSON objects, each read with its type or refused by its place and name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from perfsuite.errors import PolicyError

#: The largest size: that of a C int.
_MOST_SIZE = 2**31 - 1
_MOST_RATIO = 1e300

_Read = TypeVar("_Read")


class Fields:
    """The fields of one JSON object; each method raises PolicyError where a field is missing or something else."""

    def __init__(self, plain: object, where: str, *, joint: str = ": ") -> None:
        """Read from `plain`, which must be an object; `where` is its place, and `joint` leads on to its parts."""
        if not isinstance(plain, dict):
            raise PolicyError(f"{where}: is {shown(plain)}, expected an object")
        self._plain: Mapping[str, Any] = plain
        self.where = where
        self._joint = joint

    def get(self, name: str) -> Any:
        """Return what a field holds."""
        if name not in self._plain:
            raise PolicyError(
                f"{self.where}: has no {name!r}; expected it beside {', '.join(self._plain) or 'nothing'}"
            )
        return self._plain[name]

    def text(self, name: str) -> str:
        """Return a text that is not empty."""
        value = self.get(name)
        return value if isinstance(value, str) and value else self._refuse(name, "a text")

    def size(self, name: str) -> int:
        """Return a whole number that is a size."""
        value = self.get(name)
        return int(value) if is_size(value) else self._refuse(name, f"a whole number of 1 to {_MOST_SIZE}")

    def ratio(self, name: str) -> float:
        """Return a number above 0."""
        value = self.get(name)
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        return float(value) if is_number and 0 < value < _MOST_RATIO else self._refuse(name, "a number above 0")

    def sizes(self, name: str) -> tuple[int, ...]:
        """Return a list of sizes."""
        values = self.get(name)
        is_list = isinstance(values, list) and all(map(is_size, values))
        return tuple(values) if is_list else self._refuse(name, f"a list of whole numbers of 1 to {_MOST_SIZE}")

    def pairs(self, name: str, is_value: Callable[[object], bool], expected: str) -> tuple[tuple[str, Any], ...]:
        """Return an object whose values are all as `is_value` wants them."""
        values = self.get(name)
        is_right = isinstance(values, dict) and all(map(is_value, values.values()))
        return tuple(values.items()) if is_right else self._refuse(name, expected)

    def part(self, name: str, read: Callable[[Fields], _Read]) -> _Read:
        """Read an object."""
        return read_fields(read, self._part(self.get(name), name))

    def each(self, name: str, read: Callable[[Fields], _Read]) -> tuple[_Read, ...]:
        """Read a list of objects."""
        values = self.get(name)
        if not isinstance(values, list):
            self._refuse(name, "a list")
        parts = (self._part(value, f"{name}[{place}]") for place, value in enumerate(values))
        return tuple(read_fields(read, part) for part in parts)

    def _part(self, plain: object, name: str) -> Fields:
        return Fields(plain, f"{self.where}{self._joint}{name}", joint=".")

    def _refuse(self, name: str, expected: str) -> Any:
        raise PolicyError(f"{self.where}: {name} is {shown(self._plain[name])}, expected {expected}")


def read_fields(read: Callable[[Fields], _Read], fields: Fields) -> _Read:
    """Read one object; what it refuses as a whole is told with its place."""
    try:
        return read(fields)
    except PolicyError as error:
        text = str(error)
        raise PolicyError(text if text.startswith(fields.where) else f"{fields.where}: {text}") from None


def is_size(value: object) -> bool:
    """Tell whether a value is a whole number of 1 or more that a C int holds."""
    return isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= _MOST_SIZE


def is_text(value: object) -> bool:
    """Tell whether a value is a text."""
    return isinstance(value, str)


def shown(value: object) -> str:
    """Return a value as an error shows it, cut where it is long."""
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:37]}..."

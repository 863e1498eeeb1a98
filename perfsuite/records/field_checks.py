"""Checks of values out of JSON, put together into tables of what each field of a file may hold."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from typing import TypeAlias

#: Returns None where a value fits; else what is wrong, beginning with the way to it: ``.cases['a'].kind is 7, ...``.
Check: TypeAlias = Callable[[object], str | None]

#: Beyond it is no time, no count and no size; databases hold no more, and sums and quotients stay finite.
_LARGEST = 2**63 - 1
#: Ratios closer to 0 are none, and a time over one would be infinite.
_SMALLEST_RATIO = 1e-12
_MAX_CHARACTERS = 60


def text(value: object) -> str | None:
    """Accept text."""
    return None if isinstance(value, str) else _wrong(value, "text")


def flag(value: object) -> str | None:
    """Accept true and false."""
    return None if isinstance(value, bool) else _wrong(value, "true or false")


def whole_number(value: object) -> str | None:
    """Accept a whole number of either sign."""
    fits = isinstance(value, int) and not isinstance(value, bool) and abs(value) <= _LARGEST
    return None if fits else _wrong(value, "a whole number below 2**63")


def count(value: object) -> str | None:
    """Accept a whole number that is not negative, such as a time in ns."""
    fits = whole_number(value) is None and isinstance(value, int) and value >= 0
    return None if fits else _wrong(value, "a whole number from 0 to below 2**63")


def number(value: object) -> str | None:
    """Accept a finite number."""
    return None if _is_number(value) else _wrong(value, "a finite number")


def amount(value: object) -> str | None:
    """Accept a finite number that is not negative."""
    return None if _is_number(value, 0.0) else _wrong(value, "a finite number of 0 or more")


def ratio(value: object) -> str | None:
    """Accept what a time can be divided by, and 0, which is no change."""
    fits = (value == 0 and _is_number(value)) or _is_number(value, _SMALLEST_RATIO)
    return None if fits else _wrong(value, f"0 or a finite number from {_SMALLEST_RATIO}")


def or_none(check: Check) -> Check:
    """Accept null as well."""

    def wrong(value: object) -> str | None:
        told = None if value is None else check(value)
        return f"{told}, or null" if told and told.startswith(" ") else told

    return wrong


def one_of(values: Collection[str]) -> Check:
    """Accept some words alone."""
    accepted = f"one of {', '.join(values)}"
    return lambda value: None if isinstance(value, str) and value in values else _wrong(value, accepted)


def list_of(check: Check, *, key: str | None = None) -> Check:
    """Accept a list of what fits; where they have a `key`, each has its own, and the way to one goes by it."""

    def wrong(value: object) -> str | None:
        if not isinstance(value, list):
            return _wrong(value, "a list")
        names = [each.get(key) if key and isinstance(each, Mapping) else None for each in value]
        ways = (place if name is None else _shown(name) for place, name in enumerate(names))
        complaints = (f"[{way}]{told}" for way, each in zip(ways, value, strict=True) if (told := check(each)))
        return next(complaints, None) or _double([name for name in names if name is not None])

    return wrong


def by_name(check: Check) -> Check:
    """Accept an object of any names with what fits under each."""

    def wrong(value: object) -> str | None:
        if not isinstance(value, Mapping):
            return _wrong(value, "an object")
        return next((f"[{_shown(name)}]{told}" for name, each in value.items() if (told := check(each))), None)

    return wrong


def object_of(checks: Mapping[str, Check]) -> Check:
    """Accept an object whose fields fit as far as they are there; what must be there is the reader's to ask for."""

    def wrong(value: object) -> str | None:
        if not isinstance(value, Mapping):
            return _wrong(value, "an object")
        there = ((name, check(value[name])) for name, check in checks.items() if name in value)
        return next((f".{name}{told}" for name, told in there if told), None)

    return wrong


def _is_number(value: object, least: float = -math.inf) -> bool:
    is_one = isinstance(value, int | float) and not isinstance(value, bool)
    return is_one and isinstance(value, int | float) and max(least, -_LARGEST) <= value <= _LARGEST


def _double(names: list[object]) -> str | None:
    """Name what is there twice: a table by that name would lose one."""
    seen: set[object] = set()
    for name in names:
        if name in seen:
            return f"[{_shown(name)}] is there twice"
        seen.add(name)
    return None


def _wrong(value: object, accepted: str) -> str:
    return f" is {_shown(value)}, expected {accepted}"


def _shown(value: object) -> str:
    if isinstance(value, list | Mapping):
        return "a list" if isinstance(value, list) else "an object"
    told = "null" if value is None else repr(value)
    return told if len(told) <= _MAX_CHARACTERS else f"{told[: _MAX_CHARACTERS - 1]}…"

"""Values that a key of a profile may have: which are taken, and in which words that is said."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection
from dataclasses import dataclass

from perfsuite.device.profile.search import NAME_RULE, is_name

#: No part of it is what a shell, or a configuration of OpenSSH, could take for more than a name.
_ADDRESS = re.compile(r"(?!.*@(?:[-@]|$))[A-Za-z0-9_:\[][A-Za-z0-9._%@:\[\]+-]*")
_KIND = re.compile(r"[A-Za-z_][\w.-]*")
_GOVERNOR = re.compile(r"[A-Za-z0-9_-]*")
_FOLDER = re.compile(r"(/|~/).*")

_MOST_CHARACTERS = 1000
_MOST_PROCESSORS = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class Accepted:
    """What is accepted, as a question and in words."""

    takes: Callable[[object], bool]
    told: str


def whole(least: int, most: int, told: str) -> Accepted:
    """Accept a whole number within bounds."""
    return Accepted(
        takes=lambda value: isinstance(value, int) and not isinstance(value, bool) and least <= value <= most, told=told
    )


def real(least: float, most: float, told: str, *, is_open: bool = False, or_inf: bool = False) -> Accepted:
    """Accept a number within bounds, of which the lower one may be left out; ``inf`` where it is asked for."""

    def takes(value: object) -> bool:
        if isinstance(value, bool) or not isinstance(value, int | float):
            return False
        return (or_inf and value == math.inf) or (least <= value <= most and not (is_open and value == least))

    return Accepted(takes=takes, told=told)


def ratio(told: str) -> Accepted:
    """Accept a ratio between 0 and 1, both excluded."""

    def takes(value: object) -> bool:
        return isinstance(value, int | float) and not isinstance(value, bool) and 0.0 < value < 1.0

    return Accepted(takes=takes, told=f"a ratio {told}")


def one_of(words: Collection[str]) -> Accepted:
    """Accept some words alone."""
    return Accepted(takes=lambda value: isinstance(value, str) and value in words, told=f"one of {', '.join(words)}")


def _is_line(value: object) -> bool:
    return isinstance(value, str) and len(value) <= _MOST_CHARACTERS and value.isprintable()


def _is_told(value: object) -> bool:
    return isinstance(value, str) and value.strip() != "" and _is_line(value)


def _matches(pattern: re.Pattern[str]) -> Callable[[object], bool]:
    return lambda value: isinstance(value, str) and _is_line(value) and pattern.fullmatch(value) is not None


def _is_address(value: object) -> bool:
    return value == "" or _matches(_ADDRESS)(value)


def _are_processors(value: object) -> bool:
    if not isinstance(value, list) or len(set(map(str, value))) != len(value):
        return False
    return all(isinstance(each, int) and not isinstance(each, bool) and 0 <= each < _MOST_PROCESSORS for each in value)


def _are_zones(value: object) -> bool:
    return isinstance(value, list) and all(each != "" and _is_line(each) for each in value)


FLAG = Accepted(takes=lambda value: isinstance(value, bool), told="true or false")
LINE = Accepted(takes=_is_told, told="a line of text")
OPTIONAL_LINE = Accepted(takes=_is_line, told="a line of text, or '' for none")
NAME = Accepted(takes=lambda value: isinstance(value, str) and is_name(value), told=f"a name ({NAME_RULE})")
KIND = Accepted(takes=_matches(_KIND), told="a name such as phase or operator")
GOVERNOR = Accepted(takes=_matches(_GOVERNOR), told="a governor such as 'performance', or '' for none")
PATH = Accepted(takes=_is_line, told="the path of a file, or '' for none")
DEVICE_FOLDER = Accepted(takes=_matches(_FOLDER), told="a folder on the device that begins with / or ~/")
PORT = whole(1, 65535, "a whole number from 1 to 65535")
ADDRESS = Accepted(
    takes=_is_address,
    told="a host, user@host or a name of ~/.ssh/config, or adb's serial number: letters, digits and . _ - @ : % [ ] +",
)
PROCESSORS = Accepted(takes=_are_processors, told="a list of different processor numbers, such as [4, 5, 6, 7]")
THERMAL_ZONES = Accepted(takes=_are_zones, told="a list of types of thermal zones, such as ['cpu-thermal']")

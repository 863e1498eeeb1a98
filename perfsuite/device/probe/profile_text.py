"""The file of a profile, written from what a live device said; each value has a comment with its source."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterator, Sequence

from perfsuite.device.probe.identity import system_name
from perfsuite.device.probe.readings import Readings
from perfsuite.device.probe.sensors import power_sensors
from perfsuite.device.probe.suggestions import Suggestion, suggest
from perfsuite.device.reach import Reach

#: What a profile extends where no shipped one is of its kind, by the way to it.
_GENERIC = {"ssh": "generic-ssh", "adb": "generic-adb", "local": "host"}

_WIDTH = 118


def profile_text(readings: Readings, reach: Reach, *, day: str) -> str:
    """Return the TOML of a profile; `day` is when the device was asked."""
    found = suggest(readings)
    lines = [
        *_comment(
            f"Written by 'perfsuite devices probe' on {day}, from what the device said over {reach.text}. Each value "
            "is the device's own or follows from it, as its comment says; change what you know better."
        ),
        *_comment(system_name(readings)),
        *_values([each for each in found if not each.table]),
    ]
    if not any(each.key == "extends" for each in found):
        lines += _comment("No profile that ships with the suite is one of its kind.")
        lines += [_line("extends", _GENERIC[reach.way])]
    lines += ["", "[reach]", *_reach_lines(reach)]
    conditions = [each for each in found if each.table == "conditions"]
    if conditions:
        lines += ["", "[conditions]", *_values(conditions)]
    sensors = power_sensors(readings)
    told = f"Power can be read in {', '.join(sensors)}." if sensors else "No power sensor can be read."
    return "\n".join([*lines, "", *_comment(told), ""])


def _values(found: Sequence[Suggestion]) -> Iterator[str]:
    for each in found:
        yield from _comment(each.reason)
        yield _line(each.key, each.value)


def _reach_lines(reach: Reach) -> Iterator[str]:
    yield _line("way", reach.way)
    named = {"address": reach.address or None, "port": reach.port, "identity_file": reach.identity_file}
    named |= {"known_hosts_file": reach.known_hosts_file}
    yield from (_line(key, value) for key, value in named.items() if value is not None)
    if reach.home != Reach().home:
        yield _line("home", reach.home)


def _comment(text: str) -> list[str]:
    """Fold a text into comments; a control character would end one."""
    told = "".join(each if each.isprintable() else "?" for each in text)
    return [f"# {line}" for line in textwrap.wrap(told, _WIDTH, break_long_words=False, break_on_hyphens=False)]


def _line(key: str, value: str | int | float | Sequence[int] | Sequence[str]) -> str:
    return f"{key} = {_toml(value)}"


def _toml(value: str | int | float | Sequence[int] | Sequence[str]) -> str:
    if isinstance(value, str):
        return _string(value)
    if isinstance(value, int):
        return f"{value:_}"
    if isinstance(value, float):
        return repr(value)
    return "[" + ", ".join(_string(each) if isinstance(each, str) else str(each) for each in value) + "]"


def _string(text: str) -> str:
    """Return a basic string; JSON's escapes are among TOML's, but for DEL."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")

"""What a device said of itself, by name: the lines of its files, and answers to questions."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.resources import files

from perfsuite.device.stability.small_files import by_number
from perfsuite.device.target.shell_target import Target
from perfsuite.errors import DeviceError


@dataclass(frozen=True, slots=True, kw_only=True)
class Readings:
    """Lines by their name, which is a file's path or a word; what a device did not say is not there."""

    lines: Mapping[str, tuple[str, ...]]

    def all(self, name: str) -> tuple[str, ...]:
        """Return all lines of a name."""
        return self.lines.get(name, ())

    def text(self, name: str) -> str | None:
        """Return the first line without spaces around it; None where there is none, or an empty one."""
        return next((line.strip() for line in self.all(name) if line.strip()), None)

    def count(self, name: str) -> int | None:
        """Return the first line as a whole number; None where it is none."""
        told = self.text(name)
        return int(told) if told is not None and re.fullmatch(r"[+-]?\d{1,18}", told) else None

    def names(self, pattern: str) -> Iterator[re.Match[str]]:
        """Yield what a pattern finds in the names that it matches as a whole, in the order of the numbers in them."""
        matches = (match for name in self.lines if (match := re.fullmatch(pattern, name)))
        return iter(sorted(matches, key=lambda match: by_number(match[0])))


def read_lines(output: str) -> Readings:
    """Read what the survey's script printed: a name, a tab and a line's text in each line."""
    lines: dict[str, list[str]] = {}
    for line in output.split("\n"):
        name, tab, text = line.partition("\t")
        if tab:
            lines.setdefault(name, []).append(text.rstrip("\r"))
    return Readings(lines={name: tuple(texts) for name, texts in lines.items()})


#: Android's services answer within seconds; phones have hundreds of files to read.
_LIMIT_S = 60.0


def take_survey(target: Target, *, folder: str = "", is_twice: bool = False, root: str = "") -> Readings:
    """Ask a device what it is, and what is free on the disk of a folder, absolute or below ``~``, the home there.

    With `is_twice` it also says what processes use, by two looks a second apart. `root` is put before each path that is
    read, for trees of files.

    Raises DeviceError: what answers is no POSIX shell; LinkError: the device cannot be reached.
    """
    script = (files("perfsuite.device.probe") / "survey.sh").read_text("utf-8")
    command = ["sh", "-c", script, "survey", folder, "twice" if is_twice else "", root]
    answer = target.run(command, limit_s=_LIMIT_S)
    found = read_lines(answer.output.decode("utf-8", "replace"))
    if found.count("survey") != 1:
        raise DeviceError(f"{target.text}: its shell does not run a script ({answer.last_words}); a POSIX sh is needed")
    return found


def folder_there(home: str, readings: Readings) -> str:
    """Return an absolute folder of the device; ``~`` is the home that it told."""
    return home.replace("~", readings.text("home") or "", 1) if home == "~" or home.startswith("~/") else home

"""Asking a device what it is, with its shell alone."""

from __future__ import annotations

from importlib.resources import files

from perfsuite.device.probe.readings import Readings, read_lines
from perfsuite.device.target.shell_target import Target
from perfsuite.errors import DeviceError

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

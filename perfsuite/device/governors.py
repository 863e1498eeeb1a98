"""The frequency governors that may be set here, and setting one for a while."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from perfsuite.errors import DeviceError

#: Within the suite's cache: where a run keeps what it has to restore, and in which file.
STATE_FOLDER, FILE_NAME = "device", "restore.json"


def _may_write(paths: Sequence[Path]) -> list[bool]:
    return [_is_writable(each) for each in paths]


def settable_governors(
    root: Path = Path("/"), may_write: Callable[[Sequence[Path]], Sequence[bool]] = _may_write
) -> tuple[str, ...]:
    """Return the governors that every core offers and this user may set; none where the kernel offers no control.

    `may_write` says of each file whether it can be written.
    """
    from perfsuite.device.stability.governing import processor_governors  # every run of pytest loads this module

    files = processor_governors(root)
    if not files or not all(may_write([file.path for file in files])):
        return ()
    return tuple(name for name in files[0].offered if all(name in file.offered for file in files))


def refuse_noted(notes: Sequence[str]) -> None:
    """Raise `DeviceError` with the first note on a governor, if there is one."""
    from perfsuite.device.stability.governing import CONSEQUENCE  # as above

    if notes:
        raise DeviceError(notes[0].removesuffix(f"; {CONSEQUENCE}"))


def _is_writable(path: Path) -> bool:
    try:
        path.open("r+").close()
    except OSError:
        return False
    return True

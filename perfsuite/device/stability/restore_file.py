"""What a run changes on a device, which is written down before, so that it can be restored after the run was killed.

The program on the device writes the file, and restores (``native/src/agent/restore.h``).
"""

from __future__ import annotations

from dataclasses import dataclass

from perfsuite.device.stability.small_files import Governor

#: Within the suite's cache: where a run keeps what it has to restore, and in which file.
STATE_FOLDER, FILE_NAME = "device", "restore.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One value that is changed for a run."""

    #: Below the root, without a leading ``/``.
    path: str
    before: Governor
    #: All that runs have set since: any other value is somebody else's.
    set_to: tuple[Governor, ...]

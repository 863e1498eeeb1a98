"""Whether a file, and every folder above it, is root's alone: only then may root run what lies there."""

from __future__ import annotations

import stat
from pathlib import Path


def others_can_write(path: Path) -> Path | None:
    """Return the first of a path and the folders above it that somebody other than root can write; None: only root.

    A folder with the sticky bit, such as ``/tmp``, keeps others from what root has in it.
    """
    for place in (path, *path.parents):
        status = place.stat()
        is_shared = status.st_mode & (stat.S_IWGRP | stat.S_IWOTH) and not status.st_mode & stat.S_ISVTX
        if status.st_uid != 0 or is_shared:
            return place
    return None

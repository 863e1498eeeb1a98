"""Files in which a desk keeps something of a device: each is called by what decides whose it is."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path


def device_file(folder: Path, fingerprint: Mapping[str, str], *which: str | int, board: str | None) -> Path:
    """Return the file in a folder that belongs to one device.

    Its name is a hash of the fingerprint, of `which` else decides, and of the board's identity. Without a board, which
    is this machine, it is that of the versions that did not tell boards apart.
    """
    identity = json.dumps([dict(sorted(fingerprint.items())), *which, *([] if board is None else [board])])
    return folder / f"{hashlib.sha256(identity.encode()).hexdigest()[:16]}.json"

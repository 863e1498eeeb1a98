"""The hash by which a file is known, whatever it is called and wherever it lies."""

from __future__ import annotations

import hashlib
from pathlib import Path

_CHUNK_BYTES = 1 << 20


def file_digest(path: Path) -> str:
    """Return the SHA-256 of a file in hexadecimal; raises the OSError of one that cannot be read."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK_BYTES):
            digest.update(chunk)
    return digest.hexdigest()

"""Where things are kept: ``.perfsuite`` in pytest's root folder, which may be above the current one, and the cache."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from perfsuite.records.own_files import user_cache as user_cache

#: Beside the configuration of pytest.
FOLDER = ".perfsuite"


def kept_folder(name: str) -> Path:
    """Return ``.perfsuite/<name>`` of the current folder or of the nearest above that has it, up to one with ``.git``.

    Where none has it, it is that of the current folder.
    """
    here = Path(FOLDER) / name
    if here.is_dir():
        return here
    found = (folder / FOLDER / name for folder in _above(Path.cwd()))
    return next((folder for folder in found if folder.is_dir()), here)


def _above(folder: Path) -> Iterator[Path]:
    """Return the folders above one, the nearest first, and none beyond a repository's own."""
    for each in (folder, *folder.parents):
        if each != folder:
            yield each
        if (each / ".git").exists():
            return

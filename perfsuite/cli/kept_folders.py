"""Where things are kept: ``.perfsuite`` in pytest's root folder, which may be above the current one, and the cache."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from perfsuite.errors import PerfsuiteError
from perfsuite.records.own_files import refuse_foreign
from perfsuite.records.own_files import user_cache as user_cache

#: Beside the configuration of pytest.
FOLDER = ".perfsuite"


def kept_folder(name: str) -> Path:
    """Return ``.perfsuite/<name>`` of the current folder or of the nearest above that has it, up to one with ``.git``.

    Where none has it, it is that of the current folder. Raises PerfsuiteError: the one above may be written by another
    account, such as in a folder that all share.
    """
    here = Path(FOLDER) / name
    if here.is_dir():
        return here
    for folder in _above(Path.cwd()):
        if (found := folder / FOLDER / name).is_dir():
            for each in (found.parent, found):
                refuse_foreign(each, PerfsuiteError, f"a {FOLDER} in the current folder, or the command,")
            return found
    return here


def _above(folder: Path) -> Iterator[Path]:
    """Return the folders above one, the nearest first, and none beyond a repository's own."""
    for each in (folder, *folder.parents):
        if each != folder:
            yield each
        if (each / ".git").exists():
            return

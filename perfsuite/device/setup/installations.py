"""The folders that hold installations on a device, and the link ``venv`` that leads to the one that is used.

Each installation is made in a folder of its own below ``venvs/`` and stays there, for an environment cannot be moved. A
whole one has a mark; whatever has none was broken off.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

from perfsuite.device.work_folder import remove_path
from perfsuite.errors import DeviceError

#: In the folder of a whole installation: which suite it is, and who made it.
MARK = "setup.json"

#: The link to the installation that is used, and the folder of all.
LINK, FOLDER = "venv", "venvs"

#: What desks send: a folder for each suite by its digest, and wheels of others. Wheels that are made there lie in a
#: folder of that name, too, by what they were made for.
INCOMING, WHEELS = "incoming", "wheels"


def check_link(home: Path) -> None:
    """Refuse a folder where the link must be: it is somebody's own."""
    if (home / LINK).exists() and not (home / LINK).is_symlink():
        raise DeviceError(f"{home / LINK}: was not made by setup; move it away, then run setup again")


def find_installation(home: Path, identity: Mapping[str, str]) -> Path | None:
    """Return the whole installation of a suite, if there is one."""
    return next((path for path in _all(home) if read_mark(path).get("identity") == identity), None)


def new_folder(home: Path, digest: str) -> Path:
    """Return the name of a folder for a new installation; it is not made."""
    (home / FOLDER).mkdir(parents=True, exist_ok=True)
    number = 1
    while (path := home / FOLDER / f"{digest}-{number}").exists():
        number += 1
    return path


def mark(folder: Path, *, identity: Mapping[str, str], by: str) -> None:
    """Note that an installation is whole."""
    (folder / MARK).write_text(json.dumps({"identity": dict(identity), "by": by}))


def read_mark(folder: Path) -> dict[str, Any]:
    """Return the mark of an installation; {} where it has none."""
    try:
        told = json.loads((folder / MARK).read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    return told if isinstance(told, dict) else {}


def installed_digest() -> str | None:
    """Return what the suite that runs here was made of when it was set up; None where it came otherwise."""
    identity = read_mark(Path(sys.prefix)).get("identity")
    return str(identity["digest"]) if isinstance(identity, dict) and "digest" in identity else None


def choose(home: Path, folder: Path) -> None:
    """Let the link lead to an installation, from one moment to the next."""
    partial = home / f".{LINK}.new"
    partial.unlink(missing_ok=True)
    partial.symlink_to(folder)
    partial.replace(home / LINK)


def remove_broken(home: Path) -> None:
    """Remove what earlier setups began and did not end."""
    for path in _all(home):
        if not read_mark(path):
            shutil.rmtree(path, ignore_errors=True)


def remove_others(home: Path, chosen: Path) -> None:
    """Remove all installations but one."""
    for path in _all(home):
        if path != chosen:
            shutil.rmtree(path, ignore_errors=True)


def remove_sent(home: Path, digest: str, wheels: Collection[str]) -> None:
    """Remove all suites that were sent but one, and all wheels of others but these files."""
    _remove_but(home / INCOMING, (digest, WHEELS))
    _remove_but(home / INCOMING / WHEELS, wheels)


def remove_made(home: Path, requirement: str) -> None:
    """Remove all wheels that were made there but those of one requirement."""
    _remove_but(home / WHEELS, (requirement,))


def _remove_but(folder: Path, names: Collection[str]) -> None:
    for path in folder.glob("*"):
        if path.name not in names:
            remove_path(path)


def _all(home: Path) -> Iterator[Path]:
    yield from sorted(path for path in (home / FOLDER).glob("*") if path.is_dir() and not path.is_symlink())

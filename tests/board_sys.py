"""A ``/sys`` for a test board: the machine's own, with a folder's files in place of some."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

SYS = Path("/sys")

#: Folders that keep what the machine has in them besides what the tree has; every other folder of the tree is all.
_MERGED = re.compile(r"(|class|bus|devices(|/platform|/virtual|/system(|/cpu(|/cpu\d+))))")

#: What a board is measured by: the machine's own never shows through where a tree is given.
_HIDDEN = re.compile(
    r"class/(thermal|hwmon|devfreq|power_supply|powercap|kgsl|drm)"
    r"|devices/system/cpu/(cpufreq|cpu\d+/cpufreq|intel_pstate|amd_pstate)"
)


def sys_mounts(tree: Path, staging: Path) -> list[str]:
    """Return shell lines that put the tree over ``/sys``, in the mount namespace that they run in.

    The tree's files are bound, not copied: what the board writes there is seen here, and the other way round.
    """
    return [f"mkdir {_q(staging)}", *_merge(tree, SYS, staging, ""), f"mount --rbind {_q(staging)} /sys"]


def _merge(tree: Path, real: Path, to: Path, name: str) -> Iterator[str]:
    own = {each.name: each for each in sorted(tree.iterdir())}
    for each in sorted(real.iterdir()) if real.is_dir() else ():
        if each.name not in own and not _HIDDEN.fullmatch(_join(name, each.name)):
            yield from _show(each, to / each.name)
    for each in own.values():
        inner = _join(name, each.name)
        if each.is_dir() and not each.is_symlink() and _MERGED.fullmatch(inner):
            yield f"mkdir {_q(to / each.name)}"
            yield from _merge(each, real / each.name, to / each.name, inner)
        else:
            yield from _show(each, to / each.name)


def _show(source: Path, to: Path) -> Iterator[str]:
    if source.is_symlink():
        yield f"ln -s {_q(source.readlink())} {_q(to)}"
    elif source.is_dir():
        yield f"mkdir {_q(to)} && mount --rbind {_q(source)} {_q(to)}"
    else:
        yield f": >{_q(to)} && mount --bind {_q(source)} {_q(to)}"


def _join(name: str, part: str) -> str:
    return f"{name}/{part}" if name else part


def _q(path: Path) -> str:
    return shlex.quote(str(path))

"""The ``/sys`` and ``/proc`` of boards, made from the texts in tests/device/trees and tests/data/field."""

from __future__ import annotations

from pathlib import Path

TREES = Path(__file__).parent / "device" / "trees"
FIELD = Path(__file__).parent / "data" / "field"

#: A board whose small processors, among them the first, are off; a laptop most of whose zones cannot be read.
SMALL_CORES_OFF, ZONES_FAIL = "17-board-rk3399-small-cores-off", "18-laptop-thermal-zones-fail"

BOARDS = ("rubikpi", "orangepi5", "raspberrypi5", "pixel8pro")

#: Files that answer as no file of a disk does, as symbolic links to what the kernel has everywhere.
UNREADABLE = Path("/proc/self/mem")  # EIO
UNWRITABLE = Path("/proc/sys/kernel/ostype")  # EACCES or EPERM, for root, too; reads 'Linux'


def plant(board: str, root: Path) -> Path:
    text = FIELD / board / "tree.txt" if (FIELD / board).is_dir() else TREES / f"{board}.txt"
    for line in text.read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            path, _, content = line.partition(" =")
            link, _, target = content.removeprefix(" ").partition("-> ")
            put(root, path, Path(target) if not link and target else link.replace("\\n", "\n").replace("\\0", "\0"))
    return root


def put(root: Path, path: str, content: str | bytes | Path | None) -> Path:
    """Put a file there, in place of what there was: a text, bytes, a link to a path, or nothing at all."""
    place = root / path
    place.parent.mkdir(parents=True, exist_ok=True)
    place.unlink(missing_ok=True)
    if isinstance(content, Path):
        place.symlink_to(content)
    elif content is not None:
        place.write_bytes(content if isinstance(content, bytes) else f"{content}\n".encode())
    if path.startswith("usr/bin/") and not place.is_symlink() and place.is_file():
        place.chmod(0o755)
    return place


def governors(root: Path, pattern: str = "**/scaling_governor") -> list[str]:
    return [path.read_text().strip() for path in sorted(root.glob(pattern))]

"""A file system that loses what was not synced: the journal of tools/kills_shim.c, played up to a power cut.

POSIX promises no more than this: what a file held when it was last synced, and the names that its folder held when the
folder was last synced. Real file systems keep more, and which part of it differs; `LOSSES` are the ways tried here.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from pathlib import Path

#: What a cut loses: all that was not synced; contents alone, of files whose names are there; or either, by chance.
LOSSES = ("all", "contents", "some")


@dataclass(slots=True)
class _Node:
    """A file, a link or a folder: as it is, and as it is on the disk."""

    #: Of a file: where its content on the disk can be read; None for none.
    kept: Path | None = None
    #: Of a file: whether it was written since it was synced.
    is_changed: bool = False
    #: Of a link.
    text: str | None = None
    is_folder: bool = False
    #: Of a folder.
    entries: dict[str, _Node] = field(default_factory=dict)
    kept_entries: dict[str, _Node] = field(default_factory=dict)


class Disk:
    """A folder as it was before a command, and what the journal of the command does to it."""

    def __init__(self, folder: Path, before: Path, journal: Path) -> None:
        self._folder = folder
        self._by_number: dict[str, _Node] = {}
        self._root = _read(before)
        text = journal.read_text("utf-8", "surrogateescape") if journal.exists() else ""
        self.lines = text.splitlines()
        self._n_played = 0

    def play(self, until: int) -> None:
        """Do what the lines up to a number say."""
        while self._n_played < until:
            what, *words = self.lines[self._n_played].split("\t")
            self._n_played += 1
            getattr(self, f"do_{what}")(*words)

    def restore(self, to: Path, loss: str, seed: int) -> None:
        """Write what is there after a cut now into a new folder."""
        _restore(self._root, to, loss, random.Random(seed))

    def do_create(self, path: str, number: str) -> None:
        """Make a file with a name."""
        self._by_number[number] = self._put(path, _Node(is_changed=True))

    def do_unnamed(self, number: str) -> None:
        """Make a file without one."""
        self._by_number[number] = _Node(is_changed=True)

    def do_empty(self, path: str, number: str) -> None:
        """Cut a file that is there to no length."""
        entries, name = self._names(path)
        self._by_number[number] = entries[name]
        entries[name].is_changed = True

    def do_write(self, number: str) -> None:
        """Write into a file; what is not known was there before, and only grows."""
        if number in self._by_number:
            self._by_number[number].is_changed = True

    def do_sync(self, number: str, content: str) -> None:
        """Have a file's content on the disk."""
        if number in self._by_number:
            self._by_number[number].kept, self._by_number[number].is_changed = Path(content), False

    def do_names(self, path: str) -> None:
        """Have a folder's names on the disk."""
        node = self._root
        for each in Path(path).relative_to(self._folder).parts:
            node = node.entries[each]
        node.kept_entries = dict(node.entries)

    def do_mkdir(self, path: str) -> None:
        """Make a folder."""
        self._put(path, _Node(is_folder=True))

    def do_symlink(self, path: str, text: str) -> None:
        """Make a link to a name."""
        self._put(path, _Node(text=text))

    def do_link(self, path: str, number: str) -> None:
        """Give a file a name more."""
        self._put(path, self._by_number[number])

    def do_rename(self, old: str, new: str) -> None:
        """Move a file or a folder."""
        entries, name = self._names(old)
        self._put(new, entries.pop(name))

    def do_remove(self, path: str) -> None:
        """Take a name away."""
        entries, name = self._names(path)
        entries.pop(name, None)

    def _names(self, path: str) -> tuple[dict[str, _Node], str]:
        """Return the entries of the folder above a path, and the path's last name."""
        *above, name = Path(path).relative_to(self._folder).parts
        node = self._root
        for each in above:
            node = node.entries[each]
        return node.entries, name

    def _put(self, path: str, node: _Node) -> _Node:
        entries, name = self._names(path)
        entries[name] = node
        return node


def _read(path: Path) -> _Node:
    if path.is_symlink():
        return _Node(text=str(path.readlink()))
    if not path.is_dir():
        return _Node(kept=path)
    entries = {each.name: _read(each) for each in path.iterdir()}
    return _Node(is_folder=True, entries=entries, kept_entries=dict(entries))


def _restore(node: _Node, to: Path, loss: str, chance: random.Random) -> None:
    if node.text is not None:
        to.symlink_to(node.text)
    elif not node.is_folder:
        is_torn = node.is_changed and (loss == "contents" or (loss == "some" and chance.random() < 0.5))
        to.write_bytes(b"" if is_torn or node.kept is None else node.kept.read_bytes())
        to.chmod(0o755)
    else:
        to.mkdir()
        for name in sorted(node.entries.keys() | node.kept_entries.keys()):
            is_kept = loss == "all" or (loss == "some" and chance.random() < 0.5)
            if (found := (node.kept_entries if is_kept else node.entries).get(name)) is not None:
                _restore(found, to / name, loss, chance)

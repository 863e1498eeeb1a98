"""Keeps what was set before a run changes it, so that it can be restored after the run was killed.

What could not be restored stays in the file, through later runs, until it can be, or the device starts anew: a kernel
may refuse for a while, and what governs a processor that is offline comes back with it.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Annotated

from msgspec import Meta

from perfsuite.device.process_start import boot_id, process_start
from perfsuite.device.stability.small_files import Governor, is_there, read_line, write_line
from perfsuite.errors import DeviceError
from perfsuite.records.codec import read_json
from perfsuite.records.whole_file import remove_whole, write_json

#: Within the suite's cache: where a run keeps what it has to restore.
STATE_FOLDER = "device"

#: All that a restore file may name, so that a damaged or foreign one leads nowhere else.
_ALLOWED = r"\Asys/(?!.*\.\./).+/(?:scaling_governor|governor)\Z"


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One value that is changed for a run."""

    #: Below the root, without a leading ``/``.
    path: Annotated[str, Meta(pattern=_ALLOWED)]
    before: Governor
    #: All that runs have set since: any other value is somebody else's.
    set_to: tuple[Governor, ...]

    def and_to(self, others: Sequence[str]) -> Change:
        """Return the same change with more values that were set."""
        return replace(self, set_to=tuple(dict.fromkeys((*self.set_to, *others))))


@dataclass(frozen=True, slots=True, kw_only=True)
class RestoreFile:
    """What a restore file says: who changes what, and since which start of the kernel."""

    #: "" where the system did not say.
    boot_id: str
    process_id: int
    #: When that process began, in the kernel's ticks, which tells it from a later one with its number.
    process_start: int | None
    changes: tuple[Change, ...]

    def is_of_a_living_process(self, root: Path) -> bool:
        """Whether the process that has made the changes still runs."""
        started = process_start(self.process_id, root)
        return started is not None and not started.is_ended and started.ticks == self.process_start

    def is_of_this_boot(self, root: Path) -> bool:
        """Whether what was changed can still be so."""
        return bool(self.boot_id) and self.boot_id == boot_id(root)


def read_kept(path: Path) -> RestoreFile | None:
    """Read a restore file; None where there is none, or one that is damaged, or names what no run changes."""
    try:
        return read_json(path, RestoreFile, DeviceError, "check the governors", is_closed=True)
    except DeviceError:
        return None


def put_aside(path: Path) -> str:
    """Put a file away that cannot be read, and say so."""
    aside = path.with_name(f"{path.name}.damaged")
    try:
        os.replace(path, aside)
    except OSError as error:
        return f"{path}: is damaged, and cannot be moved ({error.strerror}); nothing was restored, check the governors"
    return f"{path}: is damaged; kept as {aside.name}, and nothing was restored: check the governors"


FILE_NAME = "restore.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Restored:
    """What became of one value that was not as before."""

    line: str
    is_restored: bool = False


def restore_leftovers(folder: Path, root: Path = Path("/"), *, is_nested: bool = False) -> tuple[str, ...]:
    """Restore what a run that was killed has left, and say what was done; nothing to do says nothing.

    After another boot the values are the kernel's own again, so that nothing is restored. What somebody else has
    set since is reported, and left. What this very process has set is left to the context around that has set it, or to
    the next process. Call it while the device's lock is held; where another process of the same run holds that
    (`is_nested`), what a living process has set is left to that one.

    Raises DeviceError: another process has made the changes, and still runs; with the lock in hand nobody should.
    """
    path = folder / FILE_NAME
    if not is_there(path):
        return ()
    kept = read_kept(path)
    if kept is None:
        return (put_aside(path),)
    if not kept.is_of_this_boot(root):
        with suppress(DeviceError):
            remove_whole(path, DeviceError)
        return (f"{path}: from before the last start of the device, which has reset what a run had set; removed",)
    if kept.is_of_a_living_process(root):
        if is_nested or kept.process_id == os.getpid():
            return ()
        raise DeviceError(f"{path}: process {kept.process_id} still holds what it has set; wait for it, or end it")
    return tuple(f"left by a run that was killed: {each.line}" for each in restore(kept.changes, folder, root))


def keep(changes: Sequence[Change], folder: Path, root: Path = Path("/")) -> tuple[Change, ...]:
    """Write the restore file, whole and down to the disk, before anything is changed; return what must be restored.

    What the file already holds stays in it, with the oldest value of each path. Where this process itself has written
    it, in a context around this one, only the new changes must be restored, to what that context has set. Where a
    process that is gone has left it, all that it names is.

    Raises DeviceError: it cannot be written, or is another process's that still runs.
    """
    path = folder / FILE_NAME
    started = process_start(os.getpid(), root)
    ours = RestoreFile(
        boot_id=boot_id(root), process_id=os.getpid(), process_start=started.ticks if started else None, changes=()
    )
    kept = read_kept(path)
    is_nested = kept is not None and replace(kept, changes=()) == ours
    if kept is not None and not is_nested and kept.is_of_this_boot(root) and kept.is_of_a_living_process(root):
        raise DeviceError(f"{path}: process {kept.process_id} still holds what it has set, and restores that itself")
    still = kept.changes if kept is not None and (is_nested or kept.is_of_this_boot(root)) else ()
    merged = _merged(still, changes)
    write_json(path, asdict(replace(ours, changes=merged)), DeviceError)
    return tuple(changes) if is_nested else merged


def restore(changes: Sequence[Change], folder: Path, root: Path = Path("/")) -> tuple[Restored, ...]:
    """Give every value back that is still as a run has set it, and say what became of those that were not as before.

    What is not yet as it was before the first of all changes stays in the restore file, for the next run to try again.
    """
    kept = read_kept(folder / FILE_NAME)
    set_to = {each.path: each.set_to for each in kept.changes} if kept is not None else {}
    outcomes = [_restored(each.and_to(set_to.get(each.path, ())), root) for each in changes]
    if kept is not None:
        _keep_open(kept, folder, root)
    return tuple(each for each in outcomes if each is not None)


def _merged(earlier: Sequence[Change], changes: Sequence[Change]) -> tuple[Change, ...]:
    merged = {each.path: each for each in earlier}
    for each in changes:
        merged[each.path] = merged[each.path].and_to(each.set_to) if each.path in merged else each
    return tuple(merged.values())


def _restored(change: Change, root: Path) -> Restored | None:
    """Restore one value; None where there is nothing to do."""
    path = root / change.path
    found = read_line(path)
    if found == change.before:
        return None
    if found is None:
        line = f"{path}: cannot be read now; it was {change.before!r}, which a later run restores"
        return Restored(line=line)
    if found not in change.set_to:
        line = f"{path}: somebody else has set {found!r} meanwhile; left so (it was {change.before!r})"
        return Restored(line=line)
    refusal = write_line(path, change.before)
    if refusal is None and (read := read_line(path)) != change.before:
        refusal = f"reads {read!r} afterwards"
    if refusal is not None:
        line = f"{path}: is still {found!r}; {change.before!r} cannot be restored ({refusal})"
        return Restored(line=line)
    return Restored(line=f"{path}: restored to {change.before!r}", is_restored=True)


def _keep_open(kept: RestoreFile, folder: Path, root: Path) -> None:
    """Leave in the file what is still to be restored; where it cannot be written anew, it says too much, and stays."""
    still = tuple(each for each in kept.changes if _is_open(each, root))
    with suppress(DeviceError):
        if not still:
            remove_whole(folder / FILE_NAME, DeviceError)
        elif still != kept.changes:
            write_json(folder / FILE_NAME, asdict(replace(kept, changes=still)), DeviceError)


def _is_open(change: Change, root: Path) -> bool:
    found = read_line(root / change.path)
    return found is None or (found != change.before and found in change.set_to)

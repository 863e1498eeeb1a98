"""Sets the governors that a run asks for, tells what could not be set, and restores them."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from perfsuite.device.machine import Conditions
from perfsuite.device.stability.small_files import Governor, entries, is_there, read_line, read_name
from perfsuite.device.stability.throttling import find_policies
from perfsuite.errors import DeviceError

#: A GPU's frequency control: that of the kernel's own class first, then the drivers' own places.
_GPU_FOLDERS = (
    ("sys/class/devfreq", "*"),
    ("sys/class/kgsl", "kgsl-3d0/devfreq"),
    ("sys/class/misc", "mali*/device"),
    ("sys/devices/platform", "*.mali"),
)
#: Names end so: 'fb000000.gpu', '1f000000.mali', '3d00000.qcom,kgsl-3d0', '17000000.ga10b'. Buses to a GPU's memory
#: ('kgsl-busmon', 'soc:qcom,gpubw') do not.
_GPU_NAME = re.compile(r"(?:.*[.,:])?(?:gpu|mali|mali\d|kgsl-3d\d|g[kmpva]\d\d[ab])")
#: Drivers of GPUs: mainline, Arm's, Qualcomm's, Nvidia's.
_GPU_DRIVERS = {"panfrost", "panthor", "lima", "mali", "adreno", "kgsl-3d", "nvgpu", "gk20a"}


@dataclass(frozen=True, slots=True, kw_only=True)
class GovernorFile:
    """One file that holds the name of a governor."""

    path: Path
    #: What it governs, in messages: ``policy4``, ``fb000000.gpu``.
    name: str
    #: The governors that may be set; () where the kernel does not say.
    offered: tuple[str, ...]


def processor_governors(root: Path) -> tuple[GovernorFile, ...]:
    """Return the file of every group of processors that share a clock, and of which one is on."""
    policies = find_policies(root)
    found = (_governor_file(each.folder, "scaling_governor", "scaling_available_governors") for each in policies)
    return tuple(each for each in found if each is not None)


def gpu_governors(root: Path) -> tuple[GovernorFile, ...]:
    """Return the file of every GPU with a frequency control, each once however many paths lead to it."""
    found: dict[Path, GovernorFile] = {}
    for place, pattern in _GPU_FOLDERS:
        for folder in entries(root / place, pattern):
            each = _governor_file(folder, "governor", "available_governors") if _is_gpu(folder) else None
            if each is not None and _real(each.path) not in found:
                found[_real(each.path)] = each
    return tuple(found.values())


def _is_gpu(folder: Path) -> bool:
    """Whether a folder is a GPU's, by its name or by the driver that made it."""
    if folder.parent.name != "devfreq":
        return True
    return bool(_GPU_NAME.fullmatch(folder.name)) or _real(folder / "device" / "driver").name in _GPU_DRIVERS


def _real(path: Path) -> Path:
    try:
        return path.resolve()
    except (OSError, RuntimeError):
        return path


def _governor_file(folder: Path, chosen: str, available: str) -> GovernorFile | None:
    if not is_there(folder / chosen):
        return None
    name = folder.parent.name if folder.name in {"devfreq", "device"} else folder.name
    return GovernorFile(path=folder / chosen, name=name, offered=tuple((read_line(folder / available) or "").split()))


#: With which a note on a governor ends: a run goes on without it.
CONSEQUENCE = "times vary more"


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One value that is changed for a run, and written down before, to be restored (``native/src/agent/restore.h``)."""

    #: Below the root, without a leading ``/``.
    path: str
    before: Governor
    #: All that runs have set since: any other value is somebody else's.
    set_to: tuple[Governor, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Wish:
    """A governor that one file is to hold, and what it holds."""

    #: ``governor`` or ``GPU's governor``, in messages.
    what: str
    file: GovernorFile
    found: str
    wanted: str

    def change(self, root: Path) -> Change:
        return Change(path=str(self.file.path.relative_to(root)), before=self.found, set_to=(self.wanted,))


#: By what was not done, and why: the names of all files with which it is so.
_Refusals = dict[tuple[str, str], list[str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """What became of one governor that was written."""

    #: Why it was refused, in the kernel's words.
    refusal: str | None
    #: What the file holds then.
    read: str | None


def ask_governors(
    conditions: Conditions,
    notes: list[str],
    *,
    root: Path,
    take: Callable[[Sequence[Change]], Sequence[Taken]],
    is_root: bool,
) -> None:
    """Have the governors set that the conditions name, and note what stays different from them.

    `take` writes down what is about to be changed, so that it can be restored, and then changes it; a `DeviceError` of
    its says that it did neither.
    """
    refused: _Refusals = {}
    wishes = [wish for wish in _wishes(conditions, notes, root) if not _is_refused(wish, _unoffered(wish), refused)]
    try:
        taken = take([wish.change(root) for wish in wishes]) if wishes else ()
        for wish, each in zip(wishes, taken, strict=True):
            _is_refused(wish, _difference(wish, each, is_root=is_root), refused)
    except DeviceError as error:
        notes.append(f"governors are left as they are, for they could not be restored: {error}")
    notes.extend(f"{what} ({', '.join(names)}: {why}); {CONSEQUENCE}" for (what, why), names in refused.items())


def _wishes(conditions: Conditions, notes: list[str], root: Path) -> list[_Wish]:
    """Return what must be changed; what is as it must be already is left out."""
    wishes: list[_Wish] = []
    for what, wanted, look, controlled in (
        ("governor", conditions.governor, processor_governors, "the processors' frequency"),
        ("GPU's governor", conditions.gpu_governor, gpu_governors, "a GPU's frequency"),
    ):
        files = look(root) if wanted is not None else ()
        if wanted is not None and not files:
            notes.append(f"{what} {wanted!r} cannot be set: no control of {controlled} here; {CONSEQUENCE}")
        for file in files:
            found = read_name(file.path)
            if found is None:
                notes.append(f"{what} cannot be read ({file.path}), and was not set to {wanted!r}; {CONSEQUENCE}")
            elif wanted is not None and found != wanted:
                wishes.append(_Wish(what=what, file=file, found=found, wanted=wanted))
    return wishes


def _is_refused(wish: _Wish, reason: tuple[str, str] | None, refused: _Refusals) -> bool:
    """Note why a governor is not as it was asked for, if it is not."""
    if reason is not None:
        verb, why = reason
        what = f"{wish.what} is {wish.found!r}; {wish.wanted!r} {verb}"
        refused.setdefault((what, why), []).append(wish.file.name)
    return reason is not None


def _unoffered(wish: _Wish) -> tuple[str, str] | None:
    """Return that, and what, the kernel offers where that is something else."""
    if not wish.file.offered or wish.wanted in wish.file.offered:
        return None
    return "is not offered", f"offered are {' '.join(wish.file.offered)}"


def _difference(wish: _Wish, taken: Taken, *, is_root: bool) -> tuple[str, str] | None:
    """Return what a governor did not become, and why."""
    if taken.refusal is not None:
        return "cannot be set" if is_root else "cannot be set without root", taken.refusal
    return None if taken.read == wish.wanted else ("was not taken", f"reads {taken.read!r} after it was set")

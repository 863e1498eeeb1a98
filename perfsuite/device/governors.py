"""The frequency governors that may be set here, and setting one for a while."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from perfsuite.errors import DeviceError

_POLICIES = "sys/devices/system/cpu/cpufreq/policy*"
_CHOSEN, _AVAILABLE = "scaling_governor", "scaling_available_governors"


def settable_governors(root: Path = Path("/")) -> tuple[str, ...]:
    """Return the governors that every core offers and this user may set; none where the kernel offers no control."""
    policies = _policies(root)
    if not policies or not all(_may_write(policy / _CHOSEN) for policy in policies):
        return ()
    offered = [_read(policy / _AVAILABLE).split() for policy in policies]
    return tuple(name for name in offered[0] if all(name in others for others in offered))


@contextmanager
def governor_set(name: str | None, root: Path = Path("/")) -> Iterator[None]:
    """Set a governor on all cores, read it back, and restore what each core had; `None` leaves all as it is.

    A process that is killed restores nothing.

    Raises
    ------
    DeviceError
        A core does not take it.
    """
    policies = _policies(root) if name is not None else []
    before = [_read(policy / _CHOSEN) for policy in policies]
    try:
        for policy in policies:
            _set(policy / _CHOSEN, str(name))
        yield
    finally:
        _restore({policy / _CHOSEN: governor for policy, governor in zip(policies, before, strict=True)})


def _restore(governors: Mapping[Path, str]) -> None:
    """Give every core its own back, also after one of them refuses; the first refusal is told."""
    refusals = []
    for path, governor in governors.items():
        try:
            _set(path, governor)
        except DeviceError as error:
            refusals.append(error)
    if refusals:
        raise refusals[0]


def _policies(root: Path) -> list[Path]:
    return [policy for policy in sorted(root.glob(_POLICIES)) if (policy / _AVAILABLE).exists()]


def _may_write(path: Path) -> bool:
    try:
        path.open("r+").close()
    except OSError:
        return False
    return True


def _read(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError as error:
        raise DeviceError(f"{path}: cannot be read ({error.strerror})") from None


def _set(path: Path, governor: str) -> None:
    try:
        path.write_text(governor)
    except OSError as error:
        raise DeviceError(f"{path}: governor {governor!r} cannot be set ({error.strerror})") from None
    if (chosen := _read(path)) != governor:
        raise DeviceError(f"{path}: is {chosen!r} after {governor!r} was set; the kernel did not take it")

"""The errors that a user of the suite can meet, each a single clear line."""

from __future__ import annotations

from collections.abc import Iterable


def alike(name: str, known: Iterable[str], *, most: int = 1, least_ratio: float = 0.6) -> list[str]:
    """Return the known names that are most like a mistyped one, in either case of letters; the most alike first."""
    from difflib import get_close_matches  # only a mistake needs it

    folded = {each.casefold(): each for each in known}
    return [folded[each] for each in get_close_matches(name.casefold(), folded, n=most, cutoff=least_ratio)]


def meant(name: str, known: Iterable[str], *, most: int = 1, least_ratio: float = 0.6) -> str:
    """Return the end of an error's line about an unknown name: what may be meant, or nothing where nothing is like it.

    It is the one place where the suite asks "did you mean"; whoever refuses a name appends it.
    """
    found = alike(name, known, most=most, least_ratio=least_ratio)
    return f"; did you mean {' or '.join(found)}?" if found else ""


class PerfsuiteError(Exception):
    """A user-facing failure: its text says where, what was seen against what was expected, and what to do next."""


class ArchitectureError(PerfsuiteError):
    """An architecture is unknown, or its description lacks or contradicts a field."""


class QuantizationError(PerfsuiteError):
    """A weight quantisation is unknown, or does not fit the tensor that it is asked for."""


class GgufError(PerfsuiteError):
    """A GGUF file is missing, truncated, or not GGUF at all."""


class DeviceError(PerfsuiteError):
    """A device profile is unknown, or the device lacks what a run needs."""


class EngineError(PerfsuiteError):
    """llama.cpp's libraries are missing, do not match what they are measured with, or failed."""


class NativeBuildError(PerfsuiteError):
    """A native library could not be built or loaded; the message names the log."""


class OpenClError(PerfsuiteError):
    """OpenCL is not usable: no platform, no device, or a kernel that does not build."""


class ShapeError(PerfsuiteError):
    """An operation at a shape, a tiling or a subject that there is not."""


class PolicyError(PerfsuiteError):
    """A policy by shape cannot be read, written, measured, or compared with this machine."""


class MeasurementError(PerfsuiteError):
    """A worker failed, ran past its limit, or returned records that do not match its plan."""


class SaturatedError(MeasurementError):
    """Others use so much of the device's processors that nothing can be measured on it."""


class ShapeCrashError(MeasurementError):
    """The process that measures shapes died or hung at one of them."""

    def __init__(self, case_id: str, how: str) -> None:
        super().__init__(f"{case_id}: {how}")
        #: At which, and in which way.
        self.case_id, self.how = case_id, how


class BaselineError(PerfsuiteError):
    """A baseline file cannot be read, has another schema, or cannot be written."""


class HistoryError(PerfsuiteError):
    """The history of runs cannot be read, written, compacted or asked."""


class LinkError(PerfsuiteError):
    """A device cannot be reached, or the link to it was lost."""


class LockedError(PerfsuiteError):
    """Somebody else has the device; the message says who, since when, and how a stale lock is broken."""


class AskedError(PerfsuiteError):
    """A run that is only planned has asked for what a device would measure; the request is written down."""

    def __init__(self, text: str, n_runs: int | None = None) -> None:
        super().__init__(text)
        #: How often it is to be asked for in all; None is as often as is wanted.
        self.n_runs = n_runs


class PlannedError(PerfsuiteError):
    """All that a part of a run asks of a device is written down, and nothing is measured."""


class UnansweredError(MeasurementError):
    """What a device has sent back holds no answer, or no further one, to what is asked."""

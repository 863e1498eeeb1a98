"""The errors that a user of the suite can meet, each a single clear line."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from importlib.util import find_spec

_MASK = "***"

#: How the name of an option, a variable or a part of an address ends whose value is a secret; ``--n-tokens`` is none.
_SECRET = r"(?:token|secret|passw(?:or)?d|passphrase|credentials?|signature|(?:api|access|secret|private|auth)[-_]?key)"
_NAME = rf"(?:[\w.-]*[-_.])?{_SECRET}"

#: Who asks, and the password, in an address: ``https://user:password@host``.
_USER_INFO = re.compile(r"(?<=://)[^\s/?#'\"]*@")
#: As ssh is mistaken to take it: ``user:password@host``; ``ssh:user@host`` has none.
_LOGIN = re.compile(r"(?<![\w.-])(?!(?:ssh|serial|adb):)([\w.-]+):[^\s@/:]+@")
#: A part of an address's query, or of an assignment: ``?token=...``, ``AWS_SECRET_ACCESS_KEY=...``.
_ASSIGNED = re.compile(rf"(?<![\w.-])(-{{0,2}}{_NAME}=)[^\s&#'\"]+", re.IGNORECASE)
#: llama.cpp's short name of ``--hf-token`` is the one that does not end so.
_OPTION = re.compile(rf"(?:-{{1,2}}{_NAME}|-hft)", re.IGNORECASE)


def masked(text: str) -> str:
    """Return a text without the secrets of the addresses and assignments in it."""
    text = _LOGIN.sub(rf"\g<1>:{_MASK}@", _USER_INFO.sub(f"{_MASK}@", text))
    return _ASSIGNED.sub(rf"\g<1>{_MASK}", text)


def masked_command(words: Sequence[str]) -> tuple[str, ...]:
    """Return a command's words without secrets, those of an option's own word included: ``--api-key ***``."""
    return tuple(_masked_words(words))


def _masked_words(words: Sequence[str]) -> Iterator[str]:
    is_secret = False
    for word in words:
        name, assigned, _ = word.partition("=")
        is_assigned = assigned and re.fullmatch(rf"-{{0,2}}{_NAME}", name, re.IGNORECASE)
        yield _MASK if is_secret else f"{name}={_MASK}" if is_assigned else masked(word)
        is_secret = _OPTION.fullmatch(word) is not None


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
    """Any of these; by itself, options that contradict each other, or a file that cannot be written."""

    def __str__(self) -> str:
        """Return the line, in which no address has a password."""
        return masked(super().__str__())


class ArchitectureError(PerfsuiteError):
    """An architecture is unknown, or its description is wrong; 'perfsuite architectures' lists the catalogue."""


class QuantizationError(PerfsuiteError):
    """A type of weights is unknown, or does not fit a tensor: q4_k takes rows of a multiple of 256."""


class GgufError(PerfsuiteError):
    """A GGUF file is missing, damaged, split or unknown; fetch or convert it again, or join its parts."""


class DeviceError(PerfsuiteError):
    """A device or a key of its profile is unknown, or the device lacks something."""


class EngineError(PerfsuiteError):
    """llama.cpp is missing, incomplete, not the build that was meant, or failed; 'make env' installs it."""


class NativeBuildError(PerfsuiteError):
    """Native code did not compile or load; see the log. Often g++ or the OpenCL headers are missing."""


class OpenClError(PerfsuiteError):
    """OpenCL has no such platform or device, or a kernel does not build; '-k "not kernel"' runs without."""


class ShapeError(PerfsuiteError):
    """No such operation, dimension, tile or type, or a size that is no multiple of the type's block."""


class PolicyError(PerfsuiteError):
    """A policy cannot be read, or is of another device, driver or engine; measure it again."""


class MeasurementError(PerfsuiteError):
    """A worker failed, took too long, or returned a wrong record. If the kernel killed it, memory ran out."""


class SaturatedError(MeasurementError):
    """Others use more than half of the processors; end them, or wait with --perf-wait-quiet."""


class ShapeCrashError(MeasurementError):
    """The process that measures shapes crashed or hung at one of them, which is a finding."""

    def __init__(self, case_id: str, how: str) -> None:
        super().__init__(f"{case_id}: {how}")
        #: At which, and in which way.
        self.case_id, self.how = case_id, how


class BaselineError(PerfsuiteError):
    """A baseline or run.json is damaged, of another schema, or no reference; restore or record it again."""


class HistoryError(PerfsuiteError):
    """A file of the history cannot be read or written, or a query is no SELECT."""


class LinkError(PerfsuiteError):
    """A device cannot be reached. A link that is lost during a run is tried again for a minute."""


class LockedError(PerfsuiteError):
    """Another run has the device; --perf-wait waits. 'perfsuite devices unlock --force' ends a hanging run."""


class AskedError(PerfsuiteError):
    """A planned run needs an answer of the device; the request is written down."""

    def __init__(self, text: str, n_runs: int | None = None) -> None:
        super().__init__(text)
        #: How often it is to be asked for in all; None is as often as is wanted.
        self.n_runs = n_runs


class PlannedError(PerfsuiteError):
    """All requests of a part of a planned run are written down."""


class UnansweredError(MeasurementError):
    """A planned run has no answer for a request; run run.sh on the device again, which continues."""


#: By module, the extra of pyproject.toml that installs it.
EXTRA_OF = {
    "duckdb": "history",
    "hypothesis": "shapes",
    "labgrid": "farm",
    "obstore": "s3",
    "pyopencl": "opencl",
    "pytest_benchmark": "benchmark",
    "ziglang": "zig",
}


def lack_of(module: str) -> str | None:
    """Return what is missing and the command that installs it; None where the module is installed."""
    if find_spec(module) is not None:
        return None
    return f"needs {module}, which is not installed; run: pip install 'perfsuite[{EXTRA_OF[module]}]'"


def require(module: str, asked: str, error: type[PerfsuiteError] = PerfsuiteError) -> None:
    """Raise an error that names what was asked for where the module that it needs is not installed."""
    if lack := lack_of(module):
        raise error(f"{asked}: {lack}")

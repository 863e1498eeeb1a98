"""Errors on their way over a link: told by their class and text, and raised again as the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from perfsuite import errors
from perfsuite.errors import LinkError, MeasurementError, PerfsuiteError

_Read = TypeVar("_Read")


def told_error(error: Exception) -> dict[str, str]:
    """Return an error as it travels: one line, whatever it is."""
    if isinstance(error, PerfsuiteError):
        return {"class": type(error).__name__, "text": _one_line(error)}
    if isinstance(error, OSError) and error.strerror:
        where = f"{error.filename}: " if error.filename else ""
        return {"class": MeasurementError.__name__, "text": f"{where}{error.strerror}"}
    return {"class": MeasurementError.__name__, "text": f"{type(error).__name__}: {_one_line(error)}"}


def raised_again(plain: Any) -> PerfsuiteError:
    """Return the error that was told; one that is not known here is a `MeasurementError`."""
    if not isinstance(plain, dict):
        return MeasurementError(f"an error was told that is none: {plain!r}")
    kind = getattr(errors, str(plain.get("class")), MeasurementError)
    text = str(plain.get("text"))
    try:
        return kind(text) if issubclass(kind, PerfsuiteError) else MeasurementError(text)
    except TypeError:  # one that carries more than its text
        return MeasurementError(text)


def understood(kind: str, read: Callable[[Any], _Read], plain: Any) -> _Read:
    """Read what a board has answered; `LinkError` where it is not what was asked for."""
    try:
        return read(plain)
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        raise LinkError(
            f"what the board answered to {kind!r} cannot be read ({type(error).__name__}: {_one_line(error)}); "
            "run 'perfsuite devices setup' with its name"
        ) from error


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())

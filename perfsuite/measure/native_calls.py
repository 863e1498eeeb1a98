"""Structures and functions of the native libraries, as ctypes takes them."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

from perfsuite.errors import EngineError

_ERROR_BYTES = 2048


def native_fields(*rows: tuple[Any, str]) -> tuple[tuple[str, Any], ...]:
    """Return the fields of a structure, in order: each row is a type and the names that have it."""
    return tuple((name, kind) for kind, names in rows for name in names.split())


def declare_functions(library: ctypes.CDLL, *rows: tuple[str, Any, tuple[Any, ...]]) -> None:
    """Say what functions return and take: each row is a name, the type that it returns, and those of its arguments."""
    for name, returned, taken in rows:
        function = getattr(library, name)
        function.restype, function.argtypes = returned, taken


def checked(function: Callable[..., int], *arguments: object, otherwise: str) -> None:
    """Call a function that takes room for its complaint last; `EngineError` with that, or else with `otherwise`."""
    error = ctypes.create_string_buffer(_ERROR_BYTES)
    if function(*arguments, error, ctypes.c_size_t(_ERROR_BYTES)) != 0:
        raise EngineError(error.value.decode(errors="replace") or otherwise)

"""Runs in the formats of other tools: each module makes the text of its formats, which it lists in ``EXPORTS``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from pkgutil import iter_modules


@dataclass(frozen=True, slots=True, kw_only=True)
class Export:
    """One format."""

    name: str
    #: What it is, and who reads it.
    summary: str
    #: Makes the text of runs, with what was chosen of `flags` as keywords.
    text: Callable[..., str]
    takes_many: bool = True
    #: Options without a value: by keyword, the option and what it does.
    flags: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    #: Where it is listed; those of one place by name.
    place: int = 100


def all_exports() -> list[Export]:
    """Return every format, in the order in which they are listed."""
    modules = (import_module(f"{__name__}.{each.name}") for each in iter_modules(__path__))
    found = [export for module in modules for export in getattr(module, "EXPORTS", ())]
    return sorted(found, key=lambda each: (each.place, each.name))

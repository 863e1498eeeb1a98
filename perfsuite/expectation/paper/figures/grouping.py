"""Variants that look alike in a picture, under one label."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import TypeVar

from perfsuite.workload.variant import Variant, find_variant, variant_names

Shown = TypeVar("Shown", bound=Hashable)


def variants_by(shown: Callable[[Variant], Shown]) -> tuple[tuple[str, Shown], ...]:
    """Group LIFE's variants by what is shown of them: their names, joined, with that."""
    names: dict[Shown, list[str]] = {}
    for name in variant_names():
        names.setdefault(shown(find_variant(name)), []).append(name)
    return tuple((", ".join(group), value) for value, group in names.items())

"""Every place of a tree of JSON, and the tree with something else there: for tests of what reads files."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any


def places(plain: Any, *, of_lists: int | None = None, above: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the way to everything in a tree; of lists to so many of the first, or to all."""
    keys = list(plain) if isinstance(plain, dict) else range(len(plain))[:of_lists] if isinstance(plain, list) else ()
    for key in keys:
        yield (*above, key)
        yield from places(plain[key], of_lists=of_lists, above=(*above, key))


def with_value(plain: Any, place: tuple[Any, ...], value: Any) -> Any:
    changed = copy.deepcopy(plain)
    within = changed
    for key in place[:-1]:
        within = within[key]
    within[place[-1]] = value
    return changed

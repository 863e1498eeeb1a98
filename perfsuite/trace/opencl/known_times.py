"""Sums of launches some of which were dropped: the mean of the launches alike stands for each of those."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from perfsuite.records.engine_trace import Times
from perfsuite.trace.opencl.stamps import MOST_DROPPED_RATIO, Mask

_Key = TypeVar("_Key", bound=Hashable)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FilledTimes:
    """The times of launches, and of how many of each key they are known."""

    times_ns: Times
    n_known: Mapping[str, int]
    #: Launches that are not known, of what has too many of them.
    n_unknown: Mapping[str, int]


def filled(times_ns: Times, is_known: Mask, alike: Sequence[Hashable], counted: Sequence[str]) -> FilledTimes:
    """Let the mean of the launches alike stand for one that is not known; where none of them is, nothing can."""
    places, _ = _places(alike)
    n_alike = np.bincount(places, is_known)
    means_ns = np.bincount(places, np.where(is_known, times_ns, 0)) / np.maximum(n_alike, 1)
    of, keys = _places(counted)
    n_known, n_all = np.bincount(of, is_known), np.bincount(of)
    is_unknown = n_all - n_known > MOST_DROPPED_RATIO * n_all
    is_unknown[of[n_alike[places] == 0]] = True
    return FilledTimes(
        times_ns=np.where(is_known, times_ns, np.rint(means_ns[places]).astype(np.int64)),
        n_known={key: int(n_known[place]) for key, place in keys.items()},
        n_unknown={key: int(n_all[place] - n_known[place]) for key, place in keys.items() if is_unknown[place]},
    )


def _places(keys: Sequence[_Key]) -> tuple[npt.NDArray[np.intp], dict[_Key, int]]:
    """Number the keys."""
    found: dict[_Key, int] = {}
    return np.array([found.setdefault(key, len(found)) for key in keys], np.intp), found

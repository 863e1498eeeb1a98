"""Sums of launches some of whose times are not known: what stands for those, and where nothing can.

A launch of a kernel for an operator is done again in every layer and in every step. Where its time is not known, the
median of the others of its step stands for it, or of the others of the phase where it has none in the step; a sum over
a step is then known, and the driver's odd times are told. Where fewer than `LEAST_KNOWN_RATIO` of a
kernel's launches are known, or none of a kernel for one of its operators, nothing stands for them.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from perfsuite.records.engine_trace import Times

#: Of fewer launches than this share a sum is not told.
LEAST_KNOWN_RATIO = 0.25


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FilledTimes:
    """The times of launches, ns, with those that were filled in."""

    times_ns: Times
    #: Launches by what they are counted as, and those of them that are known.
    n_launches: dict[Hashable, int]
    n_known: dict[Hashable, int]
    #: What has too few.
    unknown: frozenset[Hashable]


def filled(
    times_ns: Times,
    is_known: npt.NDArray[np.bool_],
    *,
    alike: Sequence[Hashable],
    steps: Sequence[int],
    counted: Sequence[Hashable],
) -> FilledTimes:
    """Fill in the times of launches by those that are `alike`, in the same step or else in any.

    All arguments have one value a launch; `counted` is what each is counted as.
    """
    made_ns = np.where(is_known, times_ns, 0)
    whole, by_step = _places(alike), _places(list(zip(alike, steps, strict=True)))
    for position in np.flatnonzero(~is_known).tolist():
        key = alike[position]
        here = by_step[key, steps[position]]
        known = here[is_known[here]]
        if not known.size:
            here = whole[key]
            known = here[is_known[here]]
        if known.size:
            made_ns[position] = round(float(np.median(times_ns[known])))
    hopeless = {key for key, here in whole.items() if not is_known[here].any()}
    places = _places(counted)
    n_known = {key: int(is_known[here].sum()) for key, here in places.items()}
    unknown = {key for key, here in places.items() if n_known[key] < LEAST_KNOWN_RATIO * here.size}
    unknown |= {each for each, key in zip(counted, alike, strict=True) if key in hopeless}
    return FilledTimes(
        times_ns=made_ns,
        n_launches={key: here.size for key, here in places.items()},
        n_known=n_known,
        unknown=frozenset(unknown),
    )


def _places(keys: Sequence[Hashable]) -> dict[Hashable, npt.NDArray[np.intp]]:
    """Return where each key is."""
    found: dict[Hashable, list[int]] = {}
    for position, key in enumerate(keys):
        found.setdefault(key, []).append(position)
    return {key: np.array(here, np.intp) for key, here in found.items()}

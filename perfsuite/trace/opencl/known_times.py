"""Sums of launches some of whose times are not known: what stands for those, and where nothing can.

The launches of a kernel for an operator follow each other in every step in the same order. A time that is not known is
taken for that of the same place in other steps, as much longer or shorter as its own step is:

    time(place, step) = middle(place) x median over the known places of the step of time / middle

`middle` is the median over the steps in which the place is known. Where it is known in none, the mean of what is known
of the step stands for it, or else of all steps. Where fewer than `LEAST_KNOWN_RATIO` of a kernel's launches are known,
or none of a kernel for one of its operators, nothing stands for them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from perfsuite.records.engine_trace import Times

#: Of fewer launches than this share a sum is not told.
LEAST_KNOWN_RATIO = 0.25

_N_TRIALS = 6

_Index = npt.NDArray[np.intp]
_Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FilledTimes:
    """The times of launches, ns, with those that were filled in."""

    times_ns: Times
    #: Launches by what they are counted as, and those of them that are known.
    n_launches: Mapping[Hashable, int]
    n_known: Mapping[Hashable, int]
    #: What has too few.
    unknown: frozenset[Hashable]


def filled(
    times_ns: Times, is_known: _Mask, *, alike: Sequence[Hashable], steps: Sequence[int], counted: Sequence[Hashable]
) -> FilledTimes:
    """Fill in the times of launches by those that are `alike`.

    All arguments have one value a launch, in the order of their enqueue; `counted` is what each is counted as.
    """
    made_ns = np.where(is_known, times_ns, 0)
    hopeless: set[Hashable] = set()
    step = np.array(steps, np.intp)
    for key, here in _places(alike).items():
        known = is_known[here]
        if not known.any():
            hopeless.add(key)
        elif not known.all():
            made_ns[here] = _filled_kind(times_ns[here], known, step[here])
    places = _places(counted)
    n_known = {key: int(is_known[here].sum()) for key, here in places.items()}
    unknown = {key for key, here in places.items() if n_known[key] < LEAST_KNOWN_RATIO * here.size}
    unknown |= {each for each, key in zip(counted, alike, strict=True) if key in hopeless}
    return FilledTimes(
        times_ns=made_ns,
        n_launches={key: int(here.size) for key, here in places.items()},
        n_known=n_known,
        unknown=frozenset(unknown),
    )


def fill_errors(
    found: FilledTimes, is_known: _Mask, *, alike: Sequence[Hashable], steps: Sequence[int], counted: Sequence[Hashable]
) -> dict[Hashable, float]:
    """Return by how much a step's sum of each key may be off for what was filled in, over it; of those that have some.

    It is tried: as many launches are left out of the filled times again, at random, and filled in. Twice the most by
    which the median over the steps moves in `_N_TRIALS` is the error.
    """
    places = _places(counted)
    share = np.zeros(len(counted))
    for here in places.values():
        share[here] = 1 - is_known[here].mean()
    partly = {key: here for key, here in places.items() if key not in found.unknown and share[here[0]]}
    if not partly:
        return {}
    errors: dict[Hashable, float] = dict.fromkeys(partly, 0.0)
    for seed in range(_N_TRIALS):
        stays = np.random.default_rng(seed).random(len(counted)) >= share
        tried = filled(found.times_ns, stays, alike=alike, steps=steps, counted=counted)
        for key, here in partly.items():
            true_ns, tried_ns = (_middle_sum(each.times_ns[here], np.array(steps)[here]) for each in (found, tried))
            errors[key] = max(errors[key], 2 * abs(tried_ns / true_ns - 1)) if true_ns else float("inf")
    return errors


def _middle_sum(times_ns: Times, step: _Index) -> float:
    return float(np.median(np.bincount(step, times_ns)[np.unique(step)]))


def _filled_kind(times_ns: Times, is_known: _Mask, step: _Index) -> Times:
    """Fill in the launches of one kind."""
    made_ns = times_ns.astype(np.float64)
    place = _ordinals(step)
    middle_ns = np.full(place.max() + 1, np.nan)
    for each in np.unique(place[is_known]):
        middle_ns[each] = np.median(times_ns[is_known & (place == each)])
    for each in np.unique(step[~is_known]):
        here = step == each
        known = here & is_known
        levels = made_ns[known] / np.maximum(middle_ns[place[known]], 1)
        missing = here & ~is_known
        made_ns[missing] = middle_ns[place[missing]] * (np.median(levels) if levels.size else 1.0)
        stand_in_ns = made_ns[known if known.any() else is_known].mean()
        made_ns[missing] = np.where(np.isnan(made_ns[missing]), stand_in_ns, made_ns[missing])
    found_ns: Times = np.rint(made_ns).astype(np.int64)
    return found_ns


def _ordinals(step: _Index) -> _Index:
    """Count the launches within each step; those of a step follow each other."""
    is_first = np.append(True, step[1:] != step[:-1])
    first = np.maximum.accumulate(np.where(is_first, np.arange(step.size), 0))
    ordinal: _Index = np.arange(step.size) - first
    return ordinal


def _places(keys: Sequence[Hashable]) -> dict[Hashable, _Index]:
    """Return where each key is."""
    found: dict[Hashable, list[int]] = defaultdict(list)
    for position, key in enumerate(keys):
        found[key].append(position)
    return {key: np.array(here, np.intp) for key, here in found.items()}

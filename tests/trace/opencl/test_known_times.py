"""Sums of launches of which some are not known."""

from __future__ import annotations

import numpy as np
import pytest

from perfsuite.trace.opencl.known_times import fill_errors, filled

#: Ten launches of two kinds in each of so many steps: the first of a step takes longer, and later steps do.
N_STEPS, N_LAUNCHES = 30, 10
STEPS = [step for step in range(N_STEPS) for _ in range(N_LAUNCHES)]
KINDS = ["odd" if place % 2 else "even" for _ in range(N_STEPS) for place in range(N_LAUNCHES)]
TIMES_NS = np.array(
    [(3000 if place < 2 else 1000) * (100 + step) // 100 for step in range(N_STEPS) for place in range(N_LAUNCHES)]
)


def sums(times_ns: np.ndarray[tuple[int], np.dtype[np.int64]]) -> list[int]:
    return [int(part.sum()) for part in np.split(times_ns, N_STEPS)]


@pytest.mark.parametrize("share", [0.0, 0.01, 0.1, 0.5, 0.7])
def test_a_step_is_as_long_as_if_all_were_known(share: float) -> None:
    """Whatever the share of launches that are not known, each step's sum is within 7 % and their median within 1 %."""
    is_known = np.random.default_rng(7).random(TIMES_NS.size) >= share
    found = filled(TIMES_NS, is_known, alike=KINDS, steps=STEPS, counted=KINDS)
    assert found.unknown == frozenset()
    assert sums(found.times_ns) == pytest.approx(sums(TIMES_NS), rel=0.07)
    assert np.median(sums(found.times_ns)) == pytest.approx(np.median(sums(TIMES_NS)), rel=0.01)
    errors = fill_errors(found, is_known, alike=KINDS, steps=STEPS, counted=KINDS)
    assert errors.keys() == (set() if share == 0 else {"odd", "even"})
    assert all(error < 0.05 for error in errors.values())


def test_times_that_scatter_have_an_error() -> None:
    scattered = (TIMES_NS * np.random.default_rng(1).choice([1, 1, 1, 9], TIMES_NS.size)).astype(np.int64)
    is_known = np.random.default_rng(2).random(TIMES_NS.size) >= 0.5
    errors = [
        max(fill_errors(found, is_known, alike=KINDS, steps=STEPS, counted=KINDS).values())
        for times_ns in (TIMES_NS, scattered)
        for found in [filled(times_ns, is_known, alike=KINDS, steps=STEPS, counted=KINDS)]
    ]
    assert errors[1] > max(0.02, 5 * errors[0])


@pytest.mark.parametrize("n_known", [0, 1, 37, 38])
def test_too_few_are_unknown_alone(n_known: int) -> None:
    is_known = np.ones(TIMES_NS.size, bool)
    odd = np.flatnonzero(np.array(KINDS) == "odd")
    is_known[odd] = False
    is_known[odd[:: odd.size // max(1, n_known)][:n_known]] = True
    found = filled(TIMES_NS, is_known, alike=KINDS, steps=STEPS, counted=KINDS)
    assert found.unknown == (frozenset() if n_known >= 38 else {"odd"})
    assert (found.n_known["odd"], found.n_launches["odd"]) == (n_known, 150)


def test_a_single_step_is_filled_by_its_others() -> None:
    times_ns, is_known = np.array([100, 200, 300]), np.array([True, False, True])
    found = filled(times_ns, is_known, alike=["a"] * 3, steps=[0] * 3, counted=["a"] * 3)
    assert found.times_ns.tolist() == [100, 200, 300]

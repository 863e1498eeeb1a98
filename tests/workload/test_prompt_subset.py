"""Subsets of prompts by length, and how far they are from the whole."""

from __future__ import annotations

import importlib.util
import itertools
import math
import random
from collections import Counter
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfsuite.errors import PerfsuiteError
from perfsuite.workload.prompt_subset import (
    choose_subset,
    divergence_nats,
    histogram,
    least_divergent_counts,
    length_bin,
    random_divergences_nats,
)

ROOT = Path(__file__).resolve().parents[2]
LENGTHS = st.lists(st.integers(min_value=1, max_value=5000), min_size=1, max_size=200)


def made_up() -> ModuleType:
    spec = importlib.util.spec_from_file_location("made_up_lengths", ROOT / "docs/examples/made_up_lengths.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def kept(lengths: list[int], indices: tuple[int, ...]) -> list[int]:
    return [lengths[at] for at in indices]


def test_bins_are_quarters_of_an_octave() -> None:
    """A bin begins at each power of two and three times between; lengths below 9 have bins of their own."""
    assert [length_bin(2**power) for power in range(12)] == [4 * power for power in range(12)]
    assert len({length_bin(n_tokens) for n_tokens in range(64, 128)}) == 4
    assert len({length_bin(n_tokens) for n_tokens in range(1, 9)}) == 8


def test_a_divergence_worked_by_hand() -> None:
    """Shares of 3/4 and 1/4 against halves: 3/4 ln(3/2) + 1/4 ln(1/2); 0 ln 0 is 0, and one bin of two ln 2 away."""
    expected = 0.75 * math.log(1.5) + 0.25 * math.log(0.5)
    assert divergence_nats({1: 3, 2: 1}, {1: 50, 2: 50}) == pytest.approx(expected, rel=1e-12)
    assert divergence_nats({1: 4, 2: 0}, {1: 1, 2: 1}) == pytest.approx(math.log(2.0))


def test_a_divergence_is_from_the_whole_and_not_the_other_way() -> None:
    """A bin that only the whole has is finite; one that only the subset has is refused."""
    assert math.isfinite(divergence_nats({1: 1}, {1: 1, 2: 9}))
    with pytest.raises(PerfsuiteError, match=r"bins \[3\] are not in the whole"):
        divergence_nats({3: 1}, {1: 1})
    with pytest.raises(PerfsuiteError, match="0 and 1 prompts"):
        divergence_nats({}, {1: 1})


@given(lengths=LENGTHS, seed=st.integers(0, 5))
def test_the_whole_does_not_diverge_from_itself(lengths: list[int], seed: int) -> None:
    """All prompts are kept once, with a divergence of 0."""
    subset = choose_subset(lengths, len(lengths), max_kl_nats=0.0, seed=seed)
    assert subset.indices == tuple(range(len(lengths)))
    assert subset.kl_nats == 0.0


@given(lengths=LENGTHS, part=st.floats(0.0, 1.0), seed=st.integers(0, 5))
def test_a_subset_has_the_size_that_was_asked_for(lengths: list[int], part: float, seed: int) -> None:
    """So many different prompts, in the order of the whole, and the divergence is that of these."""
    n_keep = max(1, round(part * len(lengths)))
    subset = choose_subset(lengths, n_keep, max_kl_nats=100.0, seed=seed)
    assert len(subset.indices) == n_keep
    assert list(subset.indices) == sorted(set(subset.indices))
    assert subset.kl_nats == divergence_nats(histogram(kept(lengths, subset.indices)), histogram(lengths))


@given(lengths=LENGTHS, part=st.floats(0.0, 1.0), bounds=st.tuples(st.integers(1, 5000), st.integers(1, 5000)))
def test_every_stretch_of_lengths_has_its_share(lengths: list[int], part: float, bounds: tuple[int, int]) -> None:
    """Between any two lengths the subset has what is proportional, to less than two prompts."""
    n_keep = max(1, round(part * len(lengths)))
    chosen = kept(lengths, choose_subset(lengths, n_keep, max_kl_nats=100.0).indices)
    n_whole = sum(min(bounds) <= each <= max(bounds) for each in lengths)
    n_chosen = sum(min(bounds) <= each <= max(bounds) for each in chosen)
    assert abs(n_chosen - n_whole * n_keep / len(lengths)) < 2.0


def test_a_seed_decides_among_equal_lengths_alone() -> None:
    """The same seed gives the same subset, another one other prompts of the same lengths."""
    lengths = [16, 16, 16, 16, 64, 64, 64, 64] * 10
    first, again, other = (choose_subset(lengths, 8, max_kl_nats=1.0, seed=seed).indices for seed in (1, 1, 2))
    assert first == again != other
    assert sorted(kept(lengths, first)) == sorted(kept(lengths, other)) == [16] * 4 + [64] * 4


def brute_force_nats(whole: dict[int, int], n_keep: int) -> float:
    """Return the least divergence of all subsets, each of which is tried."""
    ranges = (range(min(count, n_keep) + 1) for count in whole.values())
    return min(
        divergence_nats(dict(zip(whole, counts, strict=True)), whole)
        for counts in itertools.product(*ranges)
        if sum(counts) == n_keep
    )


@given(counts=st.lists(st.integers(1, 6), min_size=1, max_size=4), part=st.floats(0.0, 1.0))
def test_the_least_divergence_is_the_least(counts: list[int], part: float) -> None:
    whole = dict(enumerate(counts))
    n_keep = max(1, round(part * sum(counts)))
    found = least_divergent_counts(whole, n_keep)
    assert sum(found.values()) == n_keep
    assert all(found[each] <= whole[each] for each in whole)
    assert divergence_nats(found, whole) == pytest.approx(brute_force_nats(whole, n_keep), abs=1e-12)


def test_a_tight_limit_is_met_where_it_can_be() -> None:
    """Where the middle ones diverge by too much, the counts of the least divergence are taken."""
    draw = random.Random(3)
    lengths = [max(1, round(draw.lognormvariate(4.0, 0.6))) for _ in range(1000)]
    loose = choose_subset(lengths, 100, max_kl_nats=1.0)
    least = divergence_nats(least_divergent_counts(histogram(lengths), 100), histogram(lengths))
    assert least < loose.kl_nats
    tight = choose_subset(lengths, 100, max_kl_nats=least)
    assert tight.kl_nats == pytest.approx(least)
    assert len(set(tight.indices)) == 100


@pytest.mark.parametrize(
    ("n_keep", "told"),
    [
        (1, r"1 of 4 prompts: the best of this size diverges by 1\.386 nats"),
        *((n_keep, f"subset of {n_keep} prompts: expected 1 to 4") for n_keep in (0, -1, 5)),
    ],
)
def test_what_no_subset_reaches_is_refused(n_keep: int, told: str) -> None:
    """One of four lengths is ln 4 = 1.386 away at best; neither none nor more than all can be kept."""
    with pytest.raises(PerfsuiteError, match=told):
        choose_subset([1, 2, 4, 8], n_keep, max_kl_nats=0.1)


PUBLISHED = pytest.mark.parametrize(
    ("name", "n_keep"), [("arc-easy", 238), ("arc-challenge", 112), ("gsm8k", 131), ("hellaswag", 100)]
)


@PUBLISHED
def test_subsets_of_published_sizes_beat_chance(name: str, n_keep: int) -> None:
    """On made-up lengths each is below the 5th percentile of 1000 random subsets, and below 0.1."""
    lengths = made_up().made_up_lengths(name)
    subset = choose_subset(lengths, n_keep, max_kl_nats=0.1)
    draws = random_divergences_nats(lengths, n_keep, 1000)
    assert len(subset.indices) == n_keep
    assert subset.kl_nats < draws[50]


@PUBLISHED
@pytest.mark.parametrize("width", [1, 25])
def test_subsets_beat_chance_by_other_bins_too(name: str, n_keep: int, width: int) -> None:
    """With bins of equal width, of one token or of many, they are below the 5th percentile as well."""
    lengths = made_up().made_up_lengths(name)
    bins = [each // width for each in lengths]
    whole, draw = Counter(bins), random.Random(1)
    draws = sorted(divergence_nats(Counter(draw.sample(bins, n_keep)), whole) for _ in range(1000))
    subset = choose_subset(lengths, n_keep, max_kl_nats=0.1)
    assert divergence_nats(Counter(bins[at] for at in subset.indices), whole) < draws[50]

"""A part of a set of prompts whose lengths are distributed as those of the whole."""

from __future__ import annotations

import heapq
import math
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from perfsuite.errors import PerfsuiteError

#: Bins of a histogram of lengths: so many an octave, whatever the data set, so that divergences compare.
BINS_PER_OCTAVE = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Subset:
    """Which prompts were chosen."""

    #: Places in the whole, ascending.
    indices: tuple[int, ...]
    #: D(subset || whole) in nats.
    kl_nats: float


def length_bin(n_tokens: int) -> int:
    """Return the bin of a length: floor(4 log2 n), a quarter of an octave; short lengths have a bin of their own."""
    return math.floor(BINS_PER_OCTAVE * math.log2(n_tokens))


def histogram(lengths: Sequence[int]) -> Mapping[int, int]:
    """Count the lengths in each bin, in order of the bins; empty bins are left out."""
    return dict(sorted(Counter(map(length_bin, lengths)).items()))


def divergence_nats(subset: Mapping[int, int], whole: Mapping[int, int]) -> float:
    """Return the Kullback-Leibler divergence D(subset || whole) of two histograms in nats.

    D = sum over bins of p ln(p / q), where p and q are the bin's shares of the subset and of the whole, and 0 ln 0 = 0.
    Nothing is smoothed: a subset has no bin that its whole lacks, so every q is above 0 where p is, and D is finite.

    Raises PerfsuiteError: one of them is empty, or the first has a bin that the other lacks, and is no subset.
    """
    n_subset, n_whole = sum(subset.values()), sum(whole.values())
    if not n_subset or not n_whole:
        raise PerfsuiteError(f"divergence: {n_subset} and {n_whole} prompts, expected at least one in each")
    if missing := [each for each, count in subset.items() if count and not whole.get(each)]:
        raise PerfsuiteError(f"divergence: bins {missing} are not in the whole; expected a subset of it")
    shares = ((count / n_subset, whole[each] / n_whole) for each, count in subset.items() if count)
    # Rounding may leave a little below 0, which no divergence is.
    return max(0.0, math.fsum(p * math.log(p / q) for p, q in shares))


def choose_subset(lengths: Sequence[int], n_keep: int, *, max_kl_nats: float, seed: int = 0) -> Subset:
    """Choose `n_keep` of the prompts such that their lengths diverge from the whole's by `max_kl_nats` at most.

    In order of length the whole is cut into `n_keep` pieces of one size, and from each the middle one is taken: so
    every stretch of lengths has its share, to one prompt, whatever the bins. The seed draws the order of prompts of one
    length, and so which of them are taken; nothing is searched. Where that diverges by more than is wanted, the counts
    by bin are those of the least divergence that `n_keep` prompts can have, and of each bin middle ones are taken.

    Raises PerfsuiteError: fewer than 1 or more prompts than there are must be kept, or no subset of this size diverges
    so little.
    """
    if not 1 <= n_keep <= len(lengths):
        raise PerfsuiteError(f"subset of {n_keep} prompts: expected 1 to {len(lengths)}, which is all there are")
    draw = random.Random(seed)
    keys = [(n_tokens, draw.random()) for n_tokens in lengths]
    order = sorted(range(len(lengths)), key=keys.__getitem__)
    whole = histogram(lengths)
    for chosen in (_middles(order, n_keep), _of_counts(order, lengths, least_divergent_counts(whole, n_keep))):
        kl_nats = divergence_nats(histogram([lengths[at] for at in chosen]), whole)
        if kl_nats <= max_kl_nats:
            return Subset(indices=tuple(sorted(chosen)), kl_nats=kl_nats)
    raise PerfsuiteError(
        f"subset of {n_keep} of {len(lengths)} prompts: the best of this size diverges by {kl_nats:.4g} nats, expected "
        f"{max_kl_nats:g} at most; keep more, or allow more"
    )


def least_divergent_counts(whole: Mapping[int, int], n_keep: int) -> Mapping[int, int]:
    """Return the counts by bin of a subset of `n_keep` whose divergence from the whole is the least possible.

    The divergence is a sum of convex functions of one count each, c ln(c / (n_keep q)) / n_keep. So it is least where
    one prompt after the other goes to the bin that it costs least in.

    *Source*: B. Fox, Discrete optimization via marginal analysis, Management Science 13 (1966).
    """
    n_whole = sum(whole.values())
    fair = {each: n_keep * count / n_whole for each, count in whole.items()}
    counts = dict.fromkeys(whole, 0)
    waiting = [(_cost(1, fair[each]), each) for each in whole]
    heapq.heapify(waiting)
    for _ in range(n_keep):
        _, cheapest = heapq.heappop(waiting)
        counts[cheapest] += 1
        if (count := counts[cheapest]) < whole[cheapest]:
            heapq.heappush(waiting, (_cost(count + 1, fair[cheapest]) - _cost(count, fair[cheapest]), cheapest))
    return counts


def random_divergences_nats(lengths: Sequence[int], n_keep: int, n_draws: int, seed: int = 0) -> tuple[float, ...]:
    """Return the divergences of `n_draws` subsets that chance alone chooses, ascending: what a choice must beat."""
    draw = random.Random(seed)
    bins, whole = [length_bin(each) for each in lengths], histogram(lengths)
    return tuple(sorted(divergence_nats(Counter(draw.sample(bins, n_keep)), whole) for _ in range(n_draws)))


def _cost(count: int, fair: float) -> float:
    return count * math.log(count / fair)


def _middles(ordered: Sequence[int], n_keep: int) -> list[int]:
    """Take the middle one of each of `n_keep` pieces of one size; they differ, for no piece is below 1."""
    return [ordered[(2 * piece + 1) * len(ordered) // (2 * n_keep)] for piece in range(n_keep)]


def _of_counts(order: Sequence[int], lengths: Sequence[int], counts: Mapping[int, int]) -> list[int]:
    of_bin: dict[int, list[int]] = {}
    for at in order:
        of_bin.setdefault(length_bin(lengths[at]), []).append(at)
    return [at for each, count in counts.items() for at in _middles(of_bin[each], count)]

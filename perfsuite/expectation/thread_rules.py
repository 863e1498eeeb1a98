"""How evenly the engine's threads should share an operator: the busiest thread over the mean, by ggml's own rules.

With n threads and r rows, all alike:

* Most operators give each thread c = ceil(r / n) rows in one piece or in turn: balance = c n / r. Which dimension the
  rows are differs: all but the innermost for elementwise operators, the second alone for norms, softmax and SET_ROWS,
  heads where each has a state, channels where each has a kernel.
* Sums, means, repetitions and pools are thread 0's alone: n. What asks for no thread's number is done by every thread.
* Products of matrices are cut into at least 4 n pieces, of which each thread takes the next one when it is done: 1, and
  the last piece is at most a quarter of a thread's share. Smaller ones are cut along their longer side: c n / r.
* Fused attention cuts (queries x heads) in the same way, into up to 4 n pieces. One query over 512 positions and more
  is cut along the cache instead, into n pieces; positions that the mask hides cost nothing, so the last threads idle.
  The gated delta net cuts its (heads x sequences) into up to 4 n pieces too.
* Copies are cut by elements or by rows, as strides decide, which shapes do not show: they are expected where both ways
  agree.
* Where thread 0 first copies, or lays a kernel out, while the others wait (ACC, SET, masks and relative positions,
  transposed convolutions), or a number that is no shape decides (groups, strides, room), nothing is expected.

*Source*: ``ggml_compute_forward_mul_mat`` and ``ggml_graph_compute_thread`` (every operator runs on all threads;
``ggml_get_n_tasks`` sizes the work buffer alone) in ``ggml/src/ggml-cpu/ggml-cpu.c``, ``get_thread_range`` in
``common.h``, ``ggml_compute_forward_flash_attn_ext_f16`` and the other operators in ``ops.cpp``, ``repack.cpp``, of
llama-cpp-python 0.3.36.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod

from perfsuite.expectation.graphs.operator import Operator

#: From this many positions the engine splits a single query's attention over the cache among its threads.
#: *Source*: ``ggml_compute_forward_flash_attn_ext_f16`` in ``ggml/src/ggml-cpu/ops.cpp`` of llama.cpp.
SPLIT_POSITIONS = 512

#: Pieces that a product is cut into at least, for each thread, and their sides.
_PIECES_PER_THREAD = 4
_PIECE_ROWS, _VECTOR_PIECE_ROWS = 16, 64


@dataclass(frozen=True, slots=True, kw_only=True)
class BalanceExpectation:
    """What the threads should share, by the rules."""

    n_threads: int
    #: Busiest thread over the mean of all: 1 to the number of threads.
    balance_ratio: float
    #: What the last piece of work may add to that, where threads take the next piece when they are done.
    piece_ratio: float = 0.0
    #: Whether a thread without rows returns at once; in products and attention it meets the others on the way.
    returns_at_once: bool = False

    @property
    def limit_ratio(self) -> float:
        """The most that the rules allow."""
        return min(float(self.n_threads), self.balance_ratio + self.piece_ratio)

    @property
    def is_on_one_thread(self) -> bool:
        """Whether one thread works and the others have nothing to do and nobody to wait for."""
        return self.returns_at_once and self.n_threads > 1 and self.balance_ratio >= self.n_threads


#: How threads share an operator, from it, the number of threads and the positions of the KV cache that are in use; None
#: where shapes alone do not say it.
ThreadRule = Callable[[Operator, int, int], BalanceExpectation | None]


def by_rows(count: Callable[[Operator], int], *, meets: bool = False) -> ThreadRule:
    """Return the rule of an operator that is cut by so many rows; where they are 1, thread 0 works alone.

    `meets` says whether the threads wait for each other on the way.
    """

    def rule(operator: Operator, n_threads: int, n_used: int) -> BalanceExpectation:
        ratio = _ceiling_ratio(count(operator), n_threads)
        return BalanceExpectation(n_threads=n_threads, balance_ratio=ratio, returns_at_once=not meets)

    return rule


def by_every_thread(operator: Operator, n_threads: int, n_used: int) -> BalanceExpectation:
    """Let each thread do all of the work."""
    return _static(n_threads, 1.0)


def rolled(operator: Operator, n_threads: int, n_used: int) -> BalanceExpectation:
    """Give each thread one row more than the rows divided by the threads, rounded down, until there are none left."""
    n_rows = all_rows(operator)
    return _static(n_threads, min(n_rows, n_rows // n_threads + 1) * n_threads / n_rows)


def all_rows(operator: Operator) -> int:
    """Count the rows of the output, whatever dimensions they are in."""
    return prod(operator.output.ne[1:])


def copied(operator: Operator, n_threads: int, n_used: int) -> BalanceExpectation | None:
    """Cut a copy by elements or by rows, where both give the same."""
    rows, elements = operator.sources[0].ne[1], operator.sources[0].n_elements
    ways = {_ceiling_ratio(rows, n_threads), round(_ceiling_ratio(elements, n_threads), 2)}
    return _static(n_threads, ways.pop()) if len(ways) == 1 else None


def by_pieces(operator: Operator, n_threads: int, n_used: int) -> BalanceExpectation:
    """Count the pieces of a product: of an expert's, those of one row of activations, the fewest."""
    n_outer = operator.output.ne[0]
    n_columns = 1 if operator.op == "MUL_MAT_ID" else prod(operator.output.ne[1:])
    side = _VECTOR_PIECE_ROWS if 1 in (n_outer, n_columns) else _PIECE_ROWS
    n_pieces = -(-n_outer // side) * -(-n_columns // side)
    if n_pieces >= _PIECES_PER_THREAD * n_threads:
        return BalanceExpectation(n_threads=n_threads, balance_ratio=1.0, piece_ratio=1.0 / _PIECES_PER_THREAD)
    return BalanceExpectation(n_threads=n_threads, balance_ratio=_ceiling_ratio(max(n_outer, n_columns), n_threads))


def by_heads_or_cache(operator: Operator, n_threads: int, n_used: int) -> BalanceExpectation:
    """Cut fused attention by queries and heads, or that of one query along a long cache of floats."""
    query, key = operator.sources[:2]
    if query.ne[1] * query.ne[3] == 1 and key.ne[1] >= SPLIT_POSITIONS and key.type in ("f16", "f32"):
        n_visible = max(1, min(n_used, key.ne[1]))
        spent = split_positions(n_visible, key.ne[1], n_threads)
        return BalanceExpectation(n_threads=n_threads, balance_ratio=spent / n_visible)
    return _by_few_rows(prod(query.ne[1:]), n_threads)


def by_heads_and_sequences(operator: Operator, n_threads: int, n_used: int) -> BalanceExpectation:
    """Cut the gated delta net, whose values are (size, heads, tokens, sequences)."""
    values = operator.sources[2]
    return _by_few_rows(values.ne[1] * values.ne[3], n_threads)


def _by_few_rows(n_rows: int, n_threads: int) -> BalanceExpectation:
    """Cut rows into up to 4 pieces a thread, or 1 where these would be fewer than threads; taken when one is done."""
    size = -(-n_rows // (_PIECES_PER_THREAD * n_threads))
    if -(-n_rows // size) < n_threads:
        size = -(-n_rows // n_threads)
    pieces = [min(size, n_rows - first) for first in range(0, n_rows, size)]
    return BalanceExpectation(
        n_threads=n_threads,
        balance_ratio=_taken_in_turn(pieces, n_threads) * n_threads / n_rows,
        piece_ratio=size * n_threads / n_rows if len(pieces) > n_threads else 0.0,
    )


def split_positions(n_used: int, n_kv: int, n_threads: int) -> int:
    """Return the positions that attention cut along the cache takes as long as, those of idle threads included."""
    return n_threads * min(n_used, -(-n_kv // n_threads))


def _static(n_threads: int, balance_ratio: float) -> BalanceExpectation:
    return BalanceExpectation(n_threads=n_threads, balance_ratio=balance_ratio, returns_at_once=True)


def _ceiling_ratio(n_rows: int, n_threads: int) -> float:
    return -(-n_rows // n_threads) * n_threads / n_rows if n_rows else 1.0


def _taken_in_turn(pieces: Sequence[int], n_threads: int) -> int:
    """Return what the busiest thread does where each takes the next piece when it is done."""
    loads = [0] * n_threads
    for piece in pieces:
        heapq.heapreplace(loads, loads[0] + piece)
    return max(loads)

"""The compute buffer where it can be told by hand; that it is the engine's own is shown beside the engine."""

from __future__ import annotations

from dataclasses import replace

from perfsuite.expectation.memory.compute_buffer import PAGE_BYTES, compute_bytes, touched_bytes, worst_batch
from perfsuite.records.events import Phase

from ...catalogue_workloads import catalogue_workload


def test_the_worst_batch_is_a_full_one() -> None:
    """As many tokens as a batch or the context holds, all with logits, over a full cache."""
    short, long = (worst_batch(catalogue_workload("smollm2-135m-q8_0", name)) for name in ("siso", "p2000-g8"))
    assert (short.n_tokens, short.n_outputs, short.n_kv) == (256, 256, 256)
    assert (long.n_tokens, long.n_outputs, long.n_kv) == (512, 512, 2048)


def test_logits_of_all_tokens_decide_a_small_model() -> None:
    """Tokens, the unused embeddings, the last norm and the logits, one behind the other: 256 of each."""
    logits, row, tokens = 49152 * 4, 576 * 4, 4
    assert compute_bytes(catalogue_workload("smollm2-135m-q8_0", "siso")) == 256 * (tokens + 2 * row + logits)


def test_scores_grow_with_the_context_without_flash_attention() -> None:
    """Over 8192 positions the scores of nine heads outweigh the logits; fused they are never kept."""
    plain, fused = (
        compute_bytes(catalogue_workload("smollm2-135m-l2-q8_0", "p8000-g8", flash_attn=way)) for way in (False, True)
    )
    scores = 9 * 512 * 8192 * 4
    assert scores < plain < 1.25 * scores
    assert fused < scores


def test_smaller_batches_need_less() -> None:
    """A buffer for 32 tokens is a sixteenth of one for 512, but for what does not grow with them."""
    whole = catalogue_workload("smollm2-135m-q8_0", "p2000-g8")
    ratio = compute_bytes(replace(whole, n_ubatch=32)) / compute_bytes(whole)
    assert 1 / 16 <= ratio < 1 / 15


def test_a_run_touches_what_it_computes_only() -> None:
    """64 tokens with one row of logits write a small part of what 256 with all logits reserve."""
    workload = catalogue_workload("smollm2-135m-q8_0", "siso")
    touched = touched_bytes(workload, workload.batches(Phase.PREFILL))
    assert touched % PAGE_BYTES == 0
    assert 64 * (576 + 3 * 1536) * 4 < touched < 0.05 * compute_bytes(workload)


def test_the_worst_batch_touches_all_but_the_unused_embeddings() -> None:
    """Only alignment and pages lie between what is reserved and what the largest graph writes."""
    workload = catalogue_workload("smollm2-135m-l2-q8_0", "siso")
    reserved, touched = compute_bytes(workload), touched_bytes(workload, (worst_batch(workload),))
    assert abs(touched - reserved) <= PAGE_BYTES


def test_nothing_computed_touches_nothing() -> None:
    """A buffer that is only reserved takes no memory."""
    assert touched_bytes(catalogue_workload("smollm2-135m-l2-q8_0", "siso"), ()) == 0

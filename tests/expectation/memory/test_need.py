"""What a run needs of memory."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from perfsuite.expectation.memory.comparison import STORED_SAMPLES, MemoryGap, MemoryRecord
from perfsuite.expectation.memory.need import (
    PAGE_BYTES,
    MemoryNeed,
    compute_bytes,
    is_repacked,
    kv_bytes,
    memory_need,
    tensor_bytes,
    touched_bytes,
    weight_memory,
    work_bytes,
    worst_batch,
)
from perfsuite.records.events import Phase
from perfsuite.records.memory_timeline import MemoryPhase, MemorySample, MemoryTimeline
from perfsuite.workload.catalog import find
from perfsuite.workload.tensors import TensorSpec, tensor_specs
from perfsuite.workload.weights import materialize, synthetic_weights

from ...catalogue_workloads import catalogue_weights, catalogue_workload


def sample(at_ns: int, anonymous: int, file: int) -> MemorySample:
    return MemorySample(at_ns=at_ns, anonymous_bytes=anonymous, file_bytes=file, shared_bytes=0)


RECORD = MemoryRecord(
    weights="tiny-q8_0",
    scenario="siso",
    need=MemoryNeed(
        weights_file_bytes=100,
        weights_mapped_bytes=100,
        weights_repacked_bytes=0,
        kv_bytes=30,
        compute_bytes=500,
        compute_touched_bytes=20,
        output_bytes=5,
        work_bytes=5,
    ),
    timeline=MemoryTimeline(
        samples=(sample(0, 5, 5), sample(15, 10, 110), sample(30, 75, 115)),
        peak_rss_bytes=200,
        base=sample(9, 10, 10),
        phases=(MemoryPhase(name="load", start_ns=10, end_ns=20, peak_bytes=120),),
    ),
    vram_bytes=None,
    vram_missing="the run puts no layer on a GPU",
)


def test_what_was_measured_is_held_against_base_and_need() -> None:
    """200 measured, 20 before the model was opened, 160 predicted: 20 are unexplained, a tenth."""
    assert RECORD.peak == MemoryGap(measured_bytes=200, predicted_bytes=180)
    assert (RECORD.peak.unexplained_bytes, RECORD.peak.unexplained_ratio) == (20, 0.1)
    assert RECORD.anonymous == MemoryGap(measured_bytes=75, predicted_bytes=10 + 60)
    assert RECORD.file == MemoryGap(measured_bytes=115, predicted_bytes=10 + 100)


def test_a_stored_record_is_thinned() -> None:
    samples = tuple(sample(at, at, 0) for at in range(5000))
    long = replace(RECORD, timeline=replace(RECORD.timeline, samples=samples))
    stored = MemoryRecord.from_plain(long.to_plain())
    assert len(stored.timeline.samples) <= STORED_SAMPLES
    assert stored.timeline.largest == long.timeline.largest


@pytest.mark.parametrize(("flash_attn", "expected"), [(True, 64 * 1536 * 34 // 32), (False, 9 * 64 * 256 * 2)])
def test_the_widest_product_decides(flash_attn: bool, expected: int) -> None:
    """The way down of the feed-forward reads 64 rows of 1536 values, 34 bytes for each 32 of them.

    Without flash attention nine heads of 64 by 256 scores, turned to F16, outweigh every product with weights.
    """
    workload = catalogue_workload("smollm2-135m-q8_0", "siso", flash_attn=flash_attn)
    assert work_bytes(workload, workload.batches(Phase.PREFILL)) == expected
    assert work_bytes(workload, ()) == 0


@pytest.mark.parametrize(
    ("name", "scenario", "type_name", "expected"),
    [
        # 30 layers, 3 heads of 64, keys and values of 2 bytes.
        ("smollm2-135m-q8_0", "p200-g8", "f16", 256 * 30 * 2 * 3 * 64 * 2),
        ("smollm2-135m-q8_0", "p256-g8", "f16", 512 * 30 * 2 * 3 * 64 * 2),
        # 34 bytes for 32 values.
        ("smollm2-135m-q8_0", "p200-g8", "q8_0", 256 * 30 * 2 * 3 * 64 * 34 // 32),
        # One latent head of 512 + 64, no values beside it.
        ("deepseek-v2-lite-l3-q4_0", "p200-g8", "f16", 256 * 3 * 576 * 2),
        # Decompressed: 16 heads of 192 and of 128.
        ("plm-1.8b-l2-q4_0", "p200-g8", "f16", 256 * 2 * 16 * (192 + 128) * 2),
        # All positions of both of Gemma 2's layers.
        ("gemma-2-2b-l2-q4_0", "p8000-g100", "f16", 2 * 8192 * 2 * 4 * 256 * 2),
    ],
)
def test_cells_times_heads_times_sizes(name: str, scenario: str, type_name: str, expected: int) -> None:
    """Positions are padded to 256; latent attention absorbed keeps one head."""
    assert kv_bytes(catalogue_workload(name, scenario, type_k=type_name, type_v=type_name)) == expected


def test_a_sliding_window_has_fewer_cells() -> None:
    """Of Gemma 2's two layers one keeps the window, a batch and no more, unless all positions are asked for."""
    full = catalogue_workload("gemma-2-2b-l2-q4_0", "p8000-g100")
    ring = replace(full, settings=replace(full.settings, swa_full=False))
    assert kv_bytes(ring) == (8192 + 4096 + 512) * 2 * 4 * 256 * 2


def test_the_worst_batch_is_a_full_one() -> None:
    """As many tokens as a batch or the context holds, all with logits, over a full cache."""
    short, long = (worst_batch(catalogue_workload("smollm2-135m-q8_0", name)) for name in ("siso", "p2000-g8"))
    assert (short.n_tokens, short.n_outputs, short.n_kv) == (256, 256, 256)
    assert (long.n_tokens, long.n_outputs, long.n_kv) == (512, 512, 2048)


def test_logits_of_all_tokens_decide_a_small_model() -> None:
    """Tokens, the unused embeddings, the last norm and the logits, one behind the other: 256 of each."""
    logits, row, tokens = 49152 * 4, 576 * 4, 4
    assert compute_bytes(catalogue_workload("smollm2-135m-q8_0", "siso")) == 256 * (tokens + 2 * row + logits)


def test_a_run_touches_what_it_computes_only() -> None:
    """64 tokens with one row of logits write a small part of what 256 with all logits reserve."""
    workload = catalogue_workload("smollm2-135m-q8_0", "siso")
    touched = touched_bytes(workload, workload.batches(Phase.PREFILL))
    assert touched % PAGE_BYTES == 0
    assert 64 * (576 + 3 * 1536) * 4 < touched < 0.05 * compute_bytes(workload)


NEED = MemoryNeed(
    weights_file_bytes=100,
    weights_mapped_bytes=70,
    weights_repacked_bytes=30,
    kv_bytes=5,
    compute_bytes=50,
    compute_touched_bytes=8,
    output_bytes=2,
    work_bytes=1,
    vocabulary_bytes=3,
)


def test_resident_is_what_is_touched() -> None:
    """What is written of the compute buffer counts, and so does the scratch memory; the rest does not."""
    assert (NEED.anonymous_bytes, NEED.resident_bytes, NEED.weights_bytes) == (30 + 5 + 8 + 2 + 1 + 3, 70 + 49, 100)


def test_the_peak_may_be_at_the_end_of_loading() -> None:
    """The whole file and its copies at once, before its end is given back; or the run, where that takes more."""
    assert NEED.peak_bytes == 130
    assert replace(NEED, kv_bytes=50).peak_bytes == replace(NEED, kv_bytes=50).resident_bytes == 164


def test_depth_is_computed_too() -> None:
    """Filling the cache before a one-token prompt touches what a prompt of that length does."""
    deep, shallow = (
        memory_need(catalogue_workload("smollm2-135m-l2-q8_0", name), cpu_features=())
        for name in ("p1-g1-d200", "p1-g1")
    )
    assert deep.compute_touched_bytes > 10 * shallow.compute_touched_bytes


X86 = ("avx2",)
ARM = ("neon", "dotprod")

MATRIX = TensorSpec(name="blk.0.attn_q.weight", ne=(512, 64))


@pytest.mark.parametrize(
    ("type_name", "features", "expected"),
    [
        ("Q4_0", X86, True),
        ("Q4_0", (), False),
        ("Q8_0", X86, False),
        ("Q8_0", ARM, True),
        ("Q6_K", X86, False),
        ("Q6_K", ("neon", "matmul_int8"), True),
        ("Q2_K", X86, False),
        ("Q2_K", ("avx2", "avx512"), True),
    ],
)
def test_type_and_processor_decide(type_name: str, features: tuple[str, ...], *, expected: bool) -> None:
    assert is_repacked(MATRIX, type_name, features) is expected


def test_a_matrix_needs_a_multiple_of_rows() -> None:
    """AVX2 interleaves 8 rows of Q4_0, Arm 4."""
    twelve = TensorSpec(name="blk.0.attn_k.weight", ne=(512, 12))
    assert not is_repacked(twelve, "Q4_0", X86)
    assert is_repacked(twelve, "Q4_0", ARM)


@pytest.mark.parametrize(
    ("name", "ne", "expected"),
    [
        ("token_embd.weight", (512, 64), False),
        ("output.weight", (512, 64), True),
        ("blk.0.ffn_up_exps.weight", (512, 64, 4), True),
        ("blk.0.attn_k_b.weight", (512, 64, 4), False),
        ("blk.0.ffn_gate_inp_shexp.weight", (512,), False),
    ],
)
def test_only_matrices_of_products_are_copied(name: str, ne: tuple[int, ...], *, expected: bool) -> None:
    """Routed experts have three dimensions, other matrices two; embeddings are looked up."""
    assert is_repacked(TensorSpec(name=name, ne=ne), "Q4_0", X86) is expected


def test_what_is_not_copied_is_the_whole_of_the_file(tmp_path: Path) -> None:
    """The tensors span the file except its header."""
    weights = synthetic_weights(replace(find("smollm2-135m").with_layers(1), n_vocab=512), "q8_0", cache_dir=tmp_path)
    memory = weight_memory(weights, ("avx2",))
    size = materialize(weights, cache_dir=tmp_path).stat().st_size
    assert memory.repacked_bytes == 0
    assert memory.mapped_bytes == memory.file_bytes
    assert 0.98 * size < memory.file_bytes < size


def test_tied_embeddings_are_copied_as_the_output_matrix() -> None:
    """In Q4_0 the embeddings stay mapped and lie interleaved in the second buffer as well."""
    weights = catalogue_weights("smollm2-135m-q4_0")
    spec = tensor_specs(weights.architecture)[0]
    layers = [each for each in tensor_specs(weights.architecture) if each.name.startswith("blk.") and len(each.ne) > 1]
    expected = sum(tensor_bytes(each, "Q4_0") for each in (spec, *layers))
    memory = weight_memory(weights, ("avx2",))
    assert memory.repacked_bytes == expected
    assert memory.mapped_bytes == memory.file_bytes
    assert weight_memory(weights, ()).repacked_bytes == 0
    assert tensor_bytes(TensorSpec(name="x", ne=(512, 4)), "Q4_0") == 4 * 16 * 18


def test_a_copied_output_matrix_at_the_end_is_given_back() -> None:
    """Untied, the last tensor of the file is the output matrix, and the file stays mapped up to it only."""
    weights = catalogue_weights("deepseek-v2-lite-l3-q4_0")
    memory = weight_memory(weights, ("avx2",))
    output = tensor_specs(weights.architecture)[-1]
    assert output.name == "output.weight"
    assert memory.file_bytes - memory.mapped_bytes == tensor_bytes(output, weights.tensor_types[output.name])

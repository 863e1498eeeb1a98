"""Runs of the suite as tests of llama-bench."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from perfsuite.errors import PerfsuiteError
from perfsuite.records.llama_bench import BenchRun, read_llama_bench
from perfsuite.report.llama_bench_export import bench_runs
from tests.plain_runs import plain_run_of

DATA = Path(__file__).parent.parent / "data"

FINGERPRINT = {
    "soc": "AMD EPYC, cpu family 26, model 2",
    "threads": "2",
    "backend": "cpu",
    "flash_attn": "on",
    "kv_types": "f16/q8_0",
}

WriteRun = Callable[..., Path]
Exported = Callable[..., tuple[BenchRun, ...]]

#: What llama.cpp's compare-llama-bench.py joins tests by; all of them must be there and equal.
JOINED_BY = (
    *("cpu_info", "gpu_info", "backends", "n_gpu_layers", "n_cpu_moe", "tensor_buft_overrides"),
    *("model_filename", "model_type", "n_batch", "n_ubatch", "embeddings", "cpu_mask", "cpu_strict", "poll"),
    *("n_threads", "type_k", "type_v", "load_mode", "no_kv_offload", "split_mode", "main_gpu", "tensor_split"),
    *("flash_attn", "n_prompt", "n_gen", "n_depth", "fit_target", "fit_min_ctx"),
)


@pytest.fixture
def write_run(tmp_path: Path) -> WriteRun:
    """Write a run.json with what the export reads of it."""

    def write(
        samples_ns: dict[str, list[int]] | None = None, workload: str = "smollm2-135m-q8_0/p16-g4", **fields: Any
    ) -> Path:
        times = {"embedding": [1, 2], "prefill": [1_000_000, 2_000_000], "decode": [500_000, 250_000]}
        told = {
            "started_at": "2025-03-01T12:30:59.055+01:00",
            "workload": workload,
            "subject": {"llama": "llama 0.5.0-dev, ggml 0.25.3 0c1e570-dirty, build a3ad7efef74a3d92"},
            "fingerprint": {"llama": FINGERPRINT},
        }
        measured = (times if samples_ns is None else samples_ns).items()
        cases = ({"id": f"phase/{workload}/{phase}", "outcome": "new", "samples_ns": each} for phase, each in measured)
        plain = plain_run_of(*cases, **told | fields)
        path = tmp_path / "run.json"
        path.write_text(json.dumps(plain))
        return path

    return write


@pytest.fixture
def exported(tmp_path: Path) -> Exported:
    def export(path: Path, **options: Any) -> tuple[BenchRun, ...]:
        return bench_runs(path, cache_dir=tmp_path, **options)

    return export


def test_prefill_and_decode_are_two_tests(write_run: WriteRun, exported: Exported) -> None:
    """Prefill has its gather in it, decode n_gen tokens behind prompt and depth; a prompt is one batch."""
    prefill, decode = exported(write_run())
    assert (prefill.test, decode.test) == ("pp16", "tg4@d16")
    assert prefill.samples_ns == (1_000_001, 2_000_002)
    assert decode.samples_ns == (2_000_000, 1_000_000)
    assert decode.avg_ts == pytest.approx((2000 + 4000) / 2)
    runs = exported(write_run(workload="smollm2-135m-q8_0/p16-g4-d32"))
    assert [run.test for run in runs] == ["pp16@d32", "tg4@d48"]
    run, _ = exported(write_run(workload="smollm2-135m-q8_0/p1024-g4"))
    assert (run.n_batch, run.n_ubatch) == (1024, 512)


def test_it_joins_with_the_tests_of_llama_bench(write_run: WriteRun, exported: Exported) -> None:
    """With llama-bench's words nothing differs that llama.cpp joins by; a file about other weights is refused."""
    recorded = {run.test: run for run in read_llama_bench(DATA / "llama-bench.json")}
    fingerprint = {"llama": {**FINGERPRINT, "kv_types": "f16/f16"}}
    runs = exported(write_run(fingerprint=fingerprint), like=tuple(recorded.values()), build_commit="harness")
    theirs = replace(recorded["tg4"], n_depth=16)
    for ours, other in ((runs[0], recorded["pp16"]), (runs[1], theirs)):
        plain, expected = ours.to_plain(), other.to_plain()
        assert {name: plain[name] for name in JOINED_BY} == {name: expected[name] for name in JOINED_BY}
        assert ours.build_commit == "harness"
    with pytest.raises(PerfsuiteError, match="give a file with the same weights"):
        exported(write_run(), like=read_llama_bench(DATA / "llama-bench.jsonl"))


def test_a_phase_alone_is_exported_alone(write_run: WriteRun, exported: Exported) -> None:
    """An invalid decode is no test; samples of different replicates are refused."""
    assert [run.test for run in exported(write_run({"decode": [5, 6]}))] == ["tg4@d16"]
    assert [run.samples_ns for run in exported(write_run({"prefill": [5, 6]}))] == [(5, 6)]
    path = write_run()
    plain = json.loads(path.read_text())
    plain["cases"][2]["outcome"] = "invalid"
    path.write_text(json.dumps(plain))
    assert [run.test for run in exported(path)] == ["pp16"]
    with pytest.raises(PerfsuiteError, match="2 samples of prefill and 1 of embedding"):
        exported(write_run({"prefill": [5, 6], "embedding": [1]}))


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"injected": True}, "was slowed down on purpose"),
        ({"fingerprint": {"llama": {**FINGERPRINT, "n_sequences": "4"}}}, "ran with n_sequences 4, which no tool of"),
        ({"workload": "../own.gguf/siso"}, "workload's model is '../own.gguf', expected a plain name"),
    ],
)
def test_other_runs_are_refused(write_run: WriteRun, exported: Exported, fields: dict[str, Any], message: str) -> None:
    path = write_run()
    path.write_text(json.dumps({**json.loads(path.read_text()), **fields}))
    with pytest.raises(PerfsuiteError, match=message):
        exported(path)

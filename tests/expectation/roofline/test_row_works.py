"""Tests of llama-bench on the roofline."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from perfsuite.errors import PerfsuiteError
from perfsuite.expectation.cases import phase_cases
from perfsuite.expectation.llama_workload import llama_workload
from perfsuite.expectation.roofline.point import Regime, work_of
from perfsuite.expectation.roofline.row_works import (
    bench_point,
    bench_weights,
    bench_work,
    evaluation_ns,
    stored_bytes,
    stored_values,
)
from perfsuite.records.events import Phase
from perfsuite.records.llama_bench import BenchRun, read_llama_bench
from perfsuite.workload.scenario import find_scenario
from perfsuite.workload.synthetic import write_synthetic
from perfsuite.workload.weights import Weights, resolve

from ...synthetic_roofline import processor_ceilings

DATA = Path(__file__).parent.parent.parent / "data"

CEILINGS = processor_ceilings((1 << 28, 5e10), fp32_flops_per_s=5e11, f16_flops_per_s=1e12)


@pytest.fixture
def runs() -> dict[str, BenchRun]:
    """True tests of smollm2-135m in Q8_0, by name."""
    return {run.test: run for run in read_llama_bench(DATA / "llama-bench.json")}


@pytest.fixture
def weights(tmp_path: Path) -> Weights:
    return resolve("smollm2-135m-q8_0", cache_dir=tmp_path)


@pytest.mark.parametrize(
    ("name", "n_params", "size_bytes"),
    [
        ("smollm2-135m-q8_0", 134515008, 143025408),
        ("llama-3.2-1b-q4_0", 1235814432, 695378048),
        ("phi-4-mini-l8-q4_0", 1419955296, 798904704),
        ("deepseek-v2-lite-l3-q4_0", 1670135296, 940406784),
        ("qwen1.5-moe-a2.7b-l2-q4_k_m", 1763452928, 1185290240),
        ("plm-1.8b-l12-q4_0", 879026176, 494649344),
    ],
)
def test_llama_cpp_counts_the_same(tmp_path: Path, name: str, n_params: int, size_bytes: int) -> None:
    """model_n_params and model_size as llama-bench printed them are the catalogue's, RoPE factors included."""
    weights = resolve(name, cache_dir=tmp_path)
    assert (stored_values(weights.architecture), stored_bytes(weights)) == (n_params, size_bytes)


def fitting(run: BenchRun, weights: Weights, **changes: Any) -> BenchRun:
    n_params, size = stored_values(weights.architecture), stored_bytes(weights)
    return replace(run, **{"model_filename": "gone.gguf", "model_n_params": n_params, "model_size": size, **changes})


def test_weights_are_found_by_counts(runs: dict[str, BenchRun], tmp_path: Path) -> None:
    """Where the file is not here, size and parameters tell architecture and quantisation."""
    q4_0, _ = read_llama_bench(DATA / "llama-bench.jsonl")
    for run, name in ((runs["pp16"], "smollm2-135m-q8_0"), (q4_0, "smollm2-135m-q4_0")):
        assert bench_weights(run, cache_dir=tmp_path).name == name


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("smollm2-360m-bf16", "llama 360M BF16"),
        ("smollm2-360m-f16", "llama 360M F16"),
        ("llama-3.2-1b-q4_k_m", "llama 1B Q4_K - Medium"),
    ],
)
def test_the_description_tells_types_apart(runs: dict[str, BenchRun], tmp_path: Path, name: str, words: str) -> None:
    """F16 and BF16 have the same bytes, and Q4_K - Medium is a mixture; llama.cpp's words say which it is."""
    run = fitting(runs["pp16"], resolve(name, cache_dir=tmp_path), model_type=words, model_filename="360m.gguf")
    assert bench_weights(run, cache_dir=tmp_path).name == name
    if "360m" in name:
        with pytest.raises(PerfsuiteError, match="smollm2-360m-f16 and smollm2-360m-bf16 have its"):
            bench_weights(replace(run, model_type="llama"), cache_dir=tmp_path)


def test_the_file_that_ran_is_read_where_it_is(runs: dict[str, BenchRun], tmp_path: Path) -> None:
    shallow = resolve("smollm2-135m-l1-q8_0", cache_dir=tmp_path)
    path = tmp_path / "own.gguf"
    write_synthetic(shallow.architecture, "q8_0", path, seed=0)
    run = fitting(runs["pp16"], shallow, model_filename=str(path))
    assert bench_weights(run, cache_dir=tmp_path).path == path
    with pytest.raises(PerfsuiteError, match=r"own\.gguf: has \d+ parameters in \d+ bytes, llama-bench ran"):
        bench_weights(replace(run, model_size=1), cache_dir=tmp_path)


def test_a_prompt_is_the_prefill_with_its_gather(runs: dict[str, BenchRun], weights: Weights) -> None:
    """pp is embedding and prefill of the same lengths, without decode."""
    workload = llama_workload(weights, find_scenario("p16-g0"))
    parts = {case.phase: work_of(case.costs, counts_activations=False) for case in phase_cases(workload)}
    work = bench_work(runs["pp16"], weights)
    assert work.flops == parts[Phase.PREFILL].flops + parts[Phase.EMBEDDING].flops
    assert work.traffic_bytes == parts[Phase.PREFILL].traffic_bytes + parts[Phase.EMBEDDING].traffic_bytes


def test_generation_begins_at_its_depth(runs: dict[str, BenchRun], weights: Weights) -> None:
    """tg is one step over a cache of the depth and half of what is generated, which the engine reads by 256 rows."""
    empty, deep = (bench_work(replace(runs["tg4"], n_depth=depth), weights) for depth in (0, 512))
    row_bytes = 2 * 2 * 64 * 3  # keys and values, two bytes, 3 heads of 64
    assert deep.traffic_bytes - empty.traffic_bytes == 30 * 512 * row_bytes
    assert deep.flops > empty.flops


def test_prompt_and_generation_together_are_both(runs: dict[str, BenchRun], weights: Weights) -> None:
    """pp+tg is a prompt and four steps, which begin where the prompt ended."""
    prompt = bench_work(runs["pp16"], weights)
    steps = bench_work(replace(runs["tg4"], n_depth=16), weights) * 4
    both = bench_work(runs["pp16+tg4"], weights)
    assert both.flops == prompt.flops + steps.flops
    assert both.traffic_bytes == pytest.approx(prompt.traffic_bytes + steps.traffic_bytes, rel=1e-6)


@pytest.mark.parametrize(("test", "time_ns"), [("tg4", 15), ("pp16", 60), ("pp16+tg4", 60)])
def test_the_time_is_of_one_evaluation(runs: dict[str, BenchRun], test: str, time_ns: float) -> None:
    """A repetition of tg is n_gen steps; one of pp, or of both, is taken whole."""
    assert evaluation_ns(replace(runs[test], samples_ns=(80, 40, 60))) == time_ns


def test_points_lie_where_the_tests_ran(runs: dict[str, BenchRun], tmp_path: Path) -> None:
    """Each point has its test's rate; generation is bound by memory and lies to the left of the prompt."""
    chosen = [runs["pp16"], runs["tg4"], runs["pp16+tg4"]]
    prompt, step, both = (bench_point(run, CEILINGS, cache_dir=tmp_path) for run in chosen)
    assert [point.case for point in (prompt, step, both)] == [
        f"llama-bench/smollm2-135m-q8_0/{name}" for name in ("pp16", "tg4", "pp16+tg4")
    ]
    assert step.regime is Regime.MEMORY
    assert step.operational_intensity < both.operational_intensity < prompt.operational_intensity
    assert step.flops_per_s == pytest.approx(step.flops * 4 / runs["tg4"].time_ns * 1e9)


def test_a_run_on_a_gpu_has_no_place_under_the_processor(runs: dict[str, BenchRun], tmp_path: Path) -> None:
    """Its backend is named, and those whose runs can be placed."""
    with pytest.raises(PerfsuiteError, match=r"pp16: ran on 'CUDA,CPU'; only runs of the backends BLAS, CPU, OpenMP"):
        bench_point(replace(runs["pp16"], backends="CUDA,CPU"), CEILINGS, cache_dir=tmp_path)

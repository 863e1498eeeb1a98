"""The work of every row that a workload gives, and of the tests of llama-bench, which are placed under a roof."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from perfsuite.errors import PerfsuiteError
from perfsuite.expectation.cases import decode_costs, operator_cases, phase_cases
from perfsuite.expectation.graph import KV_PADDING
from perfsuite.expectation.llama_workload import LlamaWorkload, llama_workload
from perfsuite.expectation.roofline.point import Point, Work, place, work_of
from perfsuite.expectation.roofline.roofline_run import RowKind
from perfsuite.records.case import REST_ROLE
from perfsuite.records.ceilings import Ceilings
from perfsuite.records.events import Phase
from perfsuite.records.llama_bench import BenchRun
from perfsuite.workload.architecture import Architecture
from perfsuite.workload.catalog import find, names
from perfsuite.workload.ggml_types import GGML_TYPES
from perfsuite.workload.quantization import quantizations
from perfsuite.workload.scenario import find_scenario
from perfsuite.workload.tensors import tensor_specs
from perfsuite.workload.weights import Weights, resolve, synthetic_weights

#: The phase of each kind of row that is one.
PHASE_KINDS = {RowKind.PREFILL: Phase.PREFILL, RowKind.DECODE: Phase.DECODE}


def row_works(workload: LlamaWorkload) -> dict[tuple[RowKind, str], Work]:
    """Return the work of every row of a workload, by kind and role.

    Decode is the step half way through; a whole run is the prompt and every step with the cache that it has.
    """
    costs = {case.phase: case.costs for case in phase_cases(workload)}
    found = {
        (kind, ""): work_of(costs[phase], counts_activations=False)
        for kind, phase in PHASE_KINDS.items()
        if costs.get(phase)
    }
    if len(found) == len(PHASE_KINDS):
        found[RowKind.WHOLE_RUN, ""] = found[RowKind.PREFILL, ""] + generation_work(workload)
    for case in operator_cases(workload):
        if case.role != REST_ROLE and case.phase is not None:
            role = f"{case.phase.value}/{case.role}"
            found[RowKind.OPERATOR, role] = work_of(case.costs, counts_activations=True)
    return found


def generation_work(workload: LlamaWorkload) -> Work:
    """Return the work of all tokens that a workload generates, each with the cache that it has."""
    first, *others = _steps(workload)
    return sum(others, start=first)


def _steps(workload: LlamaWorkload) -> Iterator[Work]:
    """Yield the work of all steps of the generation; those alike, which padding of the cache makes many, together."""
    scenario = workload.scenario
    start = scenario.n_depth + scenario.n_prompt
    padded = Counter(-(-(start + step) // KV_PADDING) for step in range(1, scenario.n_gen + 1))
    for n_pads, n_steps in padded.items():
        n_used = min(n_pads * KV_PADDING, start + scenario.n_gen)
        yield work_of(decode_costs(workload, n_used), counts_activations=False) * n_steps


#: llama.cpp's backends that compute on the processor.
_ON_THE_PROCESSOR = frozenset({"CPU", "BLAS", "OpenMP"})


def bench_point(run: BenchRun, ceilings: Ceilings, *, cache_dir: Path, name_or_path: str | None = None) -> Point:
    """Place a test under the ceilings of the device that ran it.

    The time is the median repetition over how often the test evaluates its work: once for ``pp`` and ``pp+tg``, once a
    token for ``tg``, whose work is the step in the middle. Raises PerfsuiteError as `bench_weights` does.
    """
    if not set(run.backends.replace(" ", "").split(",")) <= _ON_THE_PROCESSOR:
        raise PerfsuiteError(
            f"{run.model_filename}, {run.test}: ran on {run.backends!r}; only runs of the backends "
            f"{', '.join(sorted(_ON_THE_PROCESSOR))} are placed under a processor's ceilings"
        )
    weights = bench_weights(run, cache_dir=cache_dir, name_or_path=name_or_path)
    return place(f"llama-bench/{weights.name}/{run.test}", bench_work(run, weights), evaluation_ns(run), ceilings)


def evaluation_ns(run: BenchRun) -> float:
    """Return the time of one evaluation of `bench_work`."""
    return run.time_ns if run.n_prompt else run.time_ns / run.n_gen


def bench_work(run: BenchRun, weights: Weights) -> Work:
    """Return the work of a prompt, of one generated token, or of a prompt with all that is generated after it.

    The engine looks the prompt's tokens up within the time that llama-bench takes, so that is part of the work.
    """
    workload = bench_workload(run, weights)
    if not workload.is_analytical:
        name = weights.architecture.gguf_architecture
        raise PerfsuiteError(
            f"{run.model_filename}: the operators of architecture {name!r} are not known, so no roofline"
        )
    costs = {case.phase: work_of(case.costs, counts_activations=False) for case in phase_cases(workload) if case.costs}
    if not run.n_prompt:
        return costs[Phase.DECODE]
    prompt = costs[Phase.EMBEDDING] + costs[Phase.PREFILL]
    return prompt + generation_work(workload) if run.n_gen else prompt


def bench_workload(run: BenchRun, weights: Weights) -> LlamaWorkload:
    """Return the workload of a test with the settings of the run; where llama.cpp chose, flash attention is on.

    For a prompt beyond `n_batch` llama-bench has the logits of the last token of each batch computed, here only of the
    very last: one row of the output matrix a batch.
    """
    scenario = find_scenario(f"p{run.n_prompt}-g{run.n_gen}-d{run.n_depth}")
    workload = llama_workload(weights, scenario, flash_attn=run.flash_attn != 0, type_k=run.type_k, type_v=run.type_v)
    return replace(workload, n_ubatch=min(run.n_ubatch, run.n_batch))


def bench_weights(run: BenchRun, *, cache_dir: Path, name_or_path: str | None = None) -> Weights:
    """Find what a test ran: by the name or GGUF given, else by its own file, else by counts in the catalogue.

    Raises PerfsuiteError: nothing fits, more than one does, or what was given has another number of parameters or
    bytes.
    """
    if name_or_path is not None:
        return _checked(run, resolve(name_or_path, cache_dir=cache_dir), name_or_path)
    path = Path(run.model_filename)
    if path.is_file():
        return _checked(run, resolve(str(path.resolve()), cache_dir=cache_dir), run.model_filename)
    return _by_counts(run, cache_dir)


def stored_bytes(weights: Weights) -> int:
    """Return the bytes of all tensors, which llama-bench calls ``model_size``."""
    return sum(
        spec.n_rows * GGML_TYPES[weights.tensor_types[spec.name]].row_bytes(spec.ne[0])
        for spec in tensor_specs(weights.architecture)
    )


def stored_values(architecture: Architecture) -> int:
    """Return the values of all tensors, which llama-bench calls ``model_n_params``: RoPE factors count as well."""
    return sum(spec.n_elements for spec in tensor_specs(architecture))


def _checked(run: BenchRun, weights: Weights, given: str) -> Weights:
    seen = (stored_values(weights.architecture), stored_bytes(weights))
    ran = (run.model_n_params, run.model_size)
    if seen != ran:
        raise PerfsuiteError(
            f"{given}: has {seen[0]} parameters in {seen[1]} bytes, llama-bench ran {run.model_filename} with "
            f"{ran[0]} in {ran[1]}; name the weights or the GGUF that it ran"
        )
    return weights


def _by_counts(run: BenchRun, cache_dir: Path) -> Weights:
    """Find the one architecture and quantisation with as many parameters and bytes.

    Types of equal size, such as Q4_0 and IQ4_NL, are told apart by llama.cpp's description, architectures of equal size
    by the file's name.
    """
    fitting = [
        weights
        for architecture in map(find, names())
        if stored_values(architecture) == run.model_n_params
        for quantization in quantizations()
        for weights in [synthetic_weights(architecture, quantization, cache_dir=cache_dir)]
        if stored_bytes(weights) == run.model_size
    ]
    described = [weights for weights in fitting if weights.quantization == _described_quantization(run)] or fitting
    file_name = Path(run.model_filename).name.lower()
    found = [weights for weights in described if weights.architecture.name in file_name] or described
    if len(found) != 1:
        fits = f"{' and '.join(weights.name for weights in found)} have" if found else "nothing in the catalogue has"
        raise PerfsuiteError(
            f"{run.model_filename}: no such file here, and {fits} its {run.model_n_params} parameters in "
            f"{run.model_size} bytes; name the weights, such as smollm2-135m-q8_0, or the path of the GGUF"
        )
    return found[0]


def _described_quantization(run: BenchRun) -> str:
    """Return the end of llama.cpp's description as the suite spells it: ``llama 1B Q4_K - Medium`` ends in q4_k_m."""
    spelt = run.model_type.lower().replace(" - medium", "_m").replace(" - small", "_s")
    return spelt.partition(" - ")[0].split()[-1] if spelt.split() else ""

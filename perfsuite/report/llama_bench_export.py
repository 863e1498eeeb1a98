"""A run of the suite as tests of llama-bench, so that what reads those reads ours."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from perfsuite.errors import PerfsuiteError
from perfsuite.expectation.llama_workload import N_UBATCH
from perfsuite.expectation.roofline.row_works import stored_bytes, stored_values
from perfsuite.records.events import PROMPT_PHASES, Phase
from perfsuite.records.llama_bench import BenchRun, FieldValue, measured_times
from perfsuite.records.run_file import moment_of
from perfsuite.records.whole_file import plain_name
from perfsuite.report.backend_ops_export import UNMEASURED, read_alone_run
from perfsuite.workload.scenario import Scenario, find_scenario
from perfsuite.workload.weights import Weights, resolve

_PHASES = (Phase.EMBEDDING, *PROMPT_PHASES, Phase.DECODE)


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredPhases:
    """The samples of a run's phases with what was run."""

    path: Path
    #: Name of the weights, as in case ids.
    weights: str
    scenario: Scenario
    #: ISO 8601.
    started_at: str
    #: The engine's version and build, in words.
    engine: str
    #: Of the group ``llama``.
    fingerprint: Mapping[str, str]
    #: One a valid replicate; a token of decode; no phase that was not measured properly.
    samples_ns: Mapping[Phase, tuple[int, ...]]


def read_measured_phases(path: Path) -> MeasuredPhases:
    """Read a run.

    Raises PerfsuiteError where the file cannot be read, is no ``run.json`` of this schema, did not measure llama.cpp,
    was slowed down on purpose, or ran more than a model alone.
    """
    run = read_alone_run(path)
    if "llama" not in run.fingerprints:
        raise PerfsuiteError(f"{path}: did not measure llama.cpp; run a phase first")
    name, _, scenario = run.workload.rpartition("/")
    valid = {each.case_id: each.samples_ns for each in run.judgements if each.outcome not in UNMEASURED}
    samples = {phase: valid.get(f"phase/{run.workload}/{phase.value}", ()) for phase in _PHASES}
    return MeasuredPhases(
        path=path,
        weights=plain_name(name, f"{path}: workload's model", PerfsuiteError),
        scenario=find_scenario(scenario),
        started_at=run.started_at,
        engine=run.subjects.get("llama", ""),
        fingerprint=run.fingerprints["llama"],
        samples_ns={phase: found for phase, found in samples.items() if found},
    )


#: What llama-bench sets and a worker leaves as it is: llama-bench's own defaults, under its names.
_DEFAULTS: tuple[tuple[str, FieldValue], ...] = (
    *(("cpu_mask", "0x0"), ("cpu_strict", False), ("poll", 50), ("n_cpu_moe", 0), ("split_mode", "layer")),
    *(("main_gpu", 0), ("no_kv_offload", False), ("devices", "auto"), ("tensor_split", "0.00")),
    *(("tensor_buft_overrides", "none"), ("load_mode", "auto"), ("lazy_mode", "auto"), ("embeddings", False)),
    *(("no_op_offload", 0), ("no_host", False), ("repack", True), ("fit_target", 0), ("fit_min_ctx", 0)),
)

#: By backend, llama.cpp's name of it and the layers that a worker gives to it.
_BACKENDS: Mapping[str, tuple[str, int]] = {"cpu": ("CPU", 0), "opencl": ("OpenCL", 999)}

_COMMIT = re.compile(r"\bggml \S+ (?P<commit>[0-9a-f]{7,40})\b")


def bench_runs(
    run_path: Path,
    *,
    cache_dir: Path,
    weights: str | None = None,
    build_commit: str | None = None,
    like: Sequence[BenchRun] = (),
) -> tuple[BenchRun, ...]:
    """Return the prefill of a ``run.json`` as ``pp<n_prompt>`` and its decode as ``tg<n_gen>`` at depth ``n_prompt``.

    A replicate is one sample. Its prefill has the gather of the embeddings in it, its decode is the median token times
    `n_gen`; sampling is in neither, as in llama-bench.

    Weights that are not of the catalogue need the GGUF that the run measured. From `like`, tests of llama-bench
    with the same weights on the same machine, come the words for what the run does not hold as llama.cpp puts
    it: processor, devices, file and description of the weights.

    Raises PerfsuiteError where the file is no run that measured a prefill or a decode, its weights are not known, or
    `like` ran other weights.
    """
    measured = read_measured_phases(run_path)
    try:
        found = resolve(weights or measured.weights, cache_dir=cache_dir)
    except PerfsuiteError as error:
        raise PerfsuiteError(f"{run_path}: {error}; name the GGUF that it measured with --model") from error
    scenario, decode = measured.scenario, measured.samples_ns.get(Phase.DECODE, ())
    times = {
        (scenario.n_prompt, 0, scenario.n_depth): _prompt_ns(measured),
        (0, scenario.n_gen, scenario.n_depth + scenario.n_prompt): tuple(each * scenario.n_gen for each in decode),
    }
    if not any(times.values()):
        raise PerfsuiteError(f"{run_path}: holds no valid prefill and no valid decode of llama.cpp; run them first")
    runs = (_bench_run(measured, found, lengths, samples_ns) for lengths, samples_ns in times.items() if samples_ns)
    named = (replace(run, build_commit=build_commit or run.build_commit) for run in runs)
    return tuple(_worded_like(run, like) if like else run for run in named)


def _prompt_ns(measured: MeasuredPhases) -> tuple[int, ...]:
    """Return the prompt's time with the gather of the embeddings, where that was recorded apart."""
    phase = next((each for each in PROMPT_PHASES if each in measured.samples_ns), Phase.PREFILL)
    prompt, gather = (measured.samples_ns.get(each, ()) for each in (phase, Phase.EMBEDDING))
    if not prompt or not gather:
        return prompt
    if len(prompt) != len(gather):
        raise PerfsuiteError(
            f"{measured.path}: {len(prompt)} samples of {phase.value} and {len(gather)} of embedding are not of the "
            "same replicates; run again"
        )
    return tuple(map(sum, zip(prompt, gather, strict=True)))


def _bench_run(
    measured: MeasuredPhases, weights: Weights, lengths: tuple[int, int, int], samples_ns: tuple[int, ...]
) -> BenchRun:
    n_prompt, n_gen, n_depth = lengths
    fingerprint = measured.fingerprint
    backend = fingerprint.get("backend", "cpu")
    backends, n_gpu_layers = _BACKENDS.get(backend, (backend, 0))
    type_k, _, type_v = fingerprint.get("kv_types", "f16/f16").partition("/")
    n_ubatch = int(fingerprint.get("n_ubatch", N_UBATCH))
    gives_them, commit = Phase.EMBED in measured.samples_ns, _COMMIT.search(measured.engine)
    return BenchRun(
        build_commit=commit["commit"] if commit else "unknown",
        build_number=0,
        cpu_info=fingerprint.get("soc", "unknown").partition(", cpu family")[0],
        gpu_info="",
        backends=backends,
        model_filename=str(weights.path or weights.name),
        model_type=_description(weights),
        model_size=stored_bytes(weights),
        model_n_params=stored_values(weights.architecture),
        n_batch=max(measured.scenario.n_prompt, n_ubatch),
        n_ubatch=n_ubatch,
        n_threads=_n_threads(measured),
        type_k=type_k,
        type_v=type_v,
        n_gpu_layers=n_gpu_layers,
        flash_attn=int(fingerprint.get("flash_attn") == "on"),
        n_prompt=n_prompt,
        n_gen=n_gen,
        n_depth=n_depth,
        test_time=_second(measured),
        **measured_times(samples_ns, n_prompt + n_gen),
        others=tuple((name, gives_them if name == "embeddings" else value) for name, value in _DEFAULTS),
    )


def _worded_like(run: BenchRun, like: Sequence[BenchRun]) -> BenchRun:
    for other in like:
        if (other.model_n_params, other.model_size) == (run.model_n_params, run.model_size):
            return replace(
                run,
                cpu_info=other.cpu_info,
                gpu_info=other.gpu_info,
                backends=other.backends,
                model_filename=other.model_filename,
                model_type=other.model_type,
            )
    raise PerfsuiteError(
        f"{like[0].model_filename}: llama-bench ran {like[0].model_n_params} parameters in {like[0].model_size} bytes, "
        f"the run measured {run.model_n_params} in {run.model_size}; give a file with the same weights"
    )


def _description(weights: Weights) -> str:
    """Describe weights as llama.cpp does, but by the exact count of parameters: ``llama 135M Q8_0``."""
    n_parameters = weights.architecture.n_parameters
    size = f"{n_parameters / 1e6:.0f}M" if n_parameters < 1e9 else f"{n_parameters / 1e9:.1f}B"
    return f"{weights.architecture.gguf_architecture} {size} {(weights.quantization or 'mixed').upper()}"


def _n_threads(measured: MeasuredPhases) -> int:
    value = measured.fingerprint.get("threads", "")
    if not value.isdecimal() or int(value) == 0:
        raise PerfsuiteError(f"{measured.path}: threads is {value!r}, expected a whole number above 0; run again")
    return int(value)


def _second(measured: MeasuredPhases) -> str:
    moment = moment_of(measured.started_at)
    if moment is None:
        raise PerfsuiteError(f"{measured.path}: started_at is {measured.started_at!r}, expected ISO 8601; run again")
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")

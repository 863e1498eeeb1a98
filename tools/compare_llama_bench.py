"""Runs the suite's worker and llama-bench in pairs and tells whether their tokens per second agree.

    python tools/compare_llama_bench.py --model smollm2-135m-q8_0 --pairs 12

A pair is one process of each, one right after the other, the order reversed from pair to pair; both have the same GGUF,
threads, batch, flash attention, KV types and binding of threads. llama-bench is what tools/llama_bench.sh makes, on the
libraries that the worker loads. The interval is that of the signed-rank test over the pairs.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import median

import platformdirs

from perfsuite.device.machine import default_threads
from perfsuite.errors import PerfsuiteError
from perfsuite.expectation.llama_workload import LlamaWorkload, llama_workload
from perfsuite.measure.engine import Engine, find_engine
from perfsuite.measure.launch import run_worker
from perfsuite.measure.llama_plan import binds_threads, llama_plan, with_drawn_layout
from perfsuite.measure.plan import LlamaPlan
from perfsuite.records.events import EngineRecord, Phase
from perfsuite.records.llama_bench import BenchRun, measured_times, read_llama_bench, write_llama_bench
from perfsuite.verdict.pairs import compare_pairs
from perfsuite.workload.scenario import find_scenario
from perfsuite.workload.weights import materialize, resolve

#: The name of our side's build where the comparison is saved: as long as the engine's commit, for llama.cpp's script
#: cuts all names to the shortest.
OUR_BUILD = "harness"


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """What both sides run."""

    plan: LlamaPlan
    llama_bench: Path
    environment: dict[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreement:
    """One test on both sides; every ratio is ours over llama-bench's."""

    test: str
    our_tokens_per_s: float
    their_tokens_per_s: float
    tokens_per_s_ratio: float
    #: Two-sided; None where the pairs are too few.
    lower_ratio: float | None
    upper_ratio: float | None
    n_pairs: int


def main() -> None:
    """Run the pairs and print what they say."""
    options = parsed()
    agreements, ours, theirs = [], [], []
    for lengths in (f"p{options.n_prompt}-g0", f"p0-g{options.n_gen}"):
        subject = subject_of(options, f"{lengths}-d{options.n_depth}")
        pairs = [pair_of(subject, first_is_ours=number % 2 == 0) for number in range(options.pairs)]
        agreements.append(agreement_of(pairs, options.alpha))
        ours += [our_run for our_run, _ in pairs]
        theirs += [their_run for _, their_run in pairs]
    if options.save is not None:
        write_llama_bench(ours, options.save / "ours.json", form="json")
        write_llama_bench(theirs, options.save / "theirs.json", form="json")
    show(agreements, as_json=options.json)


def parsed() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--model", default="smollm2-135m-q8_0", help="name of the catalogue or a GGUF")
    parser.add_argument("--n-prompt", type=int, default=128)
    parser.add_argument("--n-gen", type=int, default=32)
    parser.add_argument("--n-depth", type=int, default=0)
    parser.add_argument("--threads", type=int, default=default_threads())
    parser.add_argument("--pairs", type=int, default=12)
    parser.add_argument("--repetitions", type=int, default=3, help="within a process")
    parser.add_argument("--no-flash-attn", action="store_true")
    parser.add_argument("--recorder", default="callback", help="of the worker; none records no operators")
    parser.add_argument("--alpha", type=float, default=0.05, help="the interval holds the truth with 1 - ALPHA")
    parser.add_argument("--llama-bench", type=Path, help="default: what tools/llama_bench.sh makes")
    parser.add_argument("--save", type=Path, metavar="DIR", help="write ours.json and theirs.json, as of llama-bench")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if options.pairs < 1 or not 0 < options.alpha < 1:
        parser.error(f"--pairs={options.pairs} --alpha={options.alpha}: expected a pair or more, and 0 < ALPHA < 1")
    return options


def subject_of(options: argparse.Namespace, lengths: str) -> Subject:
    """Return what both sides run for a scenario."""
    cache_dir = Path(platformdirs.user_cache_dir("perfsuite"))
    engine = find_engine()
    weights = resolve(options.model, cache_dir=cache_dir / "models")
    workload = llama_workload(weights, find_scenario(lengths), flash_attn=not options.no_flash_attn)
    gguf_path = materialize(weights, cache_dir=cache_dir / "models")
    plan = plan_of(workload, engine, gguf_path, cache_dir, options)
    return Subject(
        plan=replace(plan, binds_threads=False),
        llama_bench=options.llama_bench or made_llama_bench(),
        environment=binding(options.threads) if plan.binds_threads else {},
    )


def plan_of(
    workload: LlamaWorkload, engine: Engine, gguf_path: Path, cache_dir: Path, options: argparse.Namespace
) -> LlamaPlan:
    """Plan the worker's process."""
    plan = llama_plan(
        workload,
        engine,
        gguf_path=gguf_path,
        cache_dir=cache_dir,
        n_threads=options.threads,
        n_repetitions=options.repetitions,
    )
    return replace(plan, recorder=options.recorder, binds_threads=binds_threads(engine))


def binding(n_threads: int) -> dict[str, str]:
    """Give each thread a processor of its own where there are as many, as the worker's launcher does, on both sides."""
    usable = sorted(os.sched_getaffinity(0))
    if n_threads != len(usable):
        return {}
    return {"OMP_PROC_BIND": "true", "OMP_PLACES": ",".join(f"{{{cpu}}}" for cpu in usable)}


def made_llama_bench() -> Path:
    """Make llama-bench where it is not made yet."""
    script = Path(__file__).resolve().parent / "llama_bench.sh"
    return Path(subprocess.run([script], stdout=subprocess.PIPE, text=True, check=True).stdout.strip())


def pair_of(subject: Subject, *, first_is_ours: bool) -> tuple[BenchRun, BenchRun]:
    """Run both sides, one after the other; return ours and theirs."""
    samples_ns = our_samples_ns(subject) if first_is_ours else ()
    their_run = bench_run(subject)
    samples_ns = samples_ns or our_samples_ns(subject)
    times = measured_times(samples_ns, their_run.n_prompt + their_run.n_gen)
    return replace(their_run, build_commit=OUR_BUILD, **times), their_run


def our_samples_ns(subject: Subject) -> tuple[int, ...]:
    """Run the worker; return the time of the prompt, or of all generated tokens, of each repetition."""
    payload = run_worker(with_drawn_layout(subject.plan, random.Random()), extra_environment=subject.environment)
    record = EngineRecord.from_plain(payload["engine"])
    phase = Phase.PREFILL if subject.plan.n_prompt else Phase.DECODE
    times = dict.fromkeys(range(subject.plan.n_repetitions), 0)
    for span in record.spans:
        if span.phase is phase:
            times[span.repetition] += span.duration_ns
    return tuple(times.values())


def bench_run(subject: Subject) -> BenchRun:
    """Run llama-bench with the plan's settings; return its one test."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "bench.json"
        with path.open("w") as out:
            environment = {**os.environ, **subject.environment}
            subprocess.run(bench_command(subject), stdout=out, stderr=subprocess.DEVNULL, env=environment, check=True)
        (run,) = read_llama_bench(path)
        return run


def bench_command(subject: Subject) -> list[str]:
    """Return the command line with every setting that the worker's plan decides."""
    plan = subject.plan
    settings = {
        "-m": plan.gguf_path,
        "-p": plan.n_prompt,
        "-n": plan.n_gen,
        "-d": plan.n_depth,
        "-r": plan.n_repetitions,
        "-t": plan.n_threads,
        "-b": plan.n_batch,
        "-ub": plan.n_ubatch,
        "-fa": int(plan.flash_attn),
        "-ctk": plan.type_k,
        "-ctv": plan.type_v,
        "-ngl": plan.n_gpu_layers,
        "-o": "json",
    }
    return [str(subject.llama_bench), *(str(each) for setting in settings.items() for each in setting)]


def agreement_of(pairs: Sequence[tuple[BenchRun, BenchRun]], alpha: float) -> Agreement:
    """Compare the sides by the median repetition of each process; each bound has half of `alpha`."""
    ours, theirs = ([round(run.time_ns) for run in side] for side in zip(*pairs, strict=True))
    run = pairs[0][1]
    n_tokens = run.n_prompt + run.n_gen
    change = compare_pairs(theirs, ours, alpha=alpha / 2)
    return Agreement(
        test=run.test,
        our_tokens_per_s=n_tokens / median(ours) * 1e9,
        their_tokens_per_s=n_tokens / median(theirs) * 1e9,
        tokens_per_s_ratio=1 / change.estimate_ratio,
        lower_ratio=None if math.isinf(change.upper_ratio) else 1 / change.upper_ratio,
        upper_ratio=None if change.lower_ratio == 0 else 1 / change.lower_ratio,
        n_pairs=change.n_pairs,
    )


def show(agreements: Sequence[Agreement], *, as_json: bool) -> None:
    """Print JSON, or a line for each test."""
    if as_json:
        print(json.dumps([asdict(each) for each in agreements], indent=1))
        return
    for each in agreements:
        bounds = "too few pairs for an interval"
        if each.lower_ratio is not None and each.upper_ratio is not None:
            bounds = f"{each.lower_ratio:.4f} to {each.upper_ratio:.4f}"
        print(
            f"{each.test}: {each.our_tokens_per_s:.2f} tokens/s, llama-bench {each.their_tokens_per_s:.2f}, "
            f"ratio {each.tokens_per_s_ratio:.4f} ({bounds}; {each.n_pairs} pairs)"
        )


if __name__ == "__main__":
    try:
        main()
    except PerfsuiteError as error:
        sys.exit(f"{Path(__file__).name}: error: {error}")

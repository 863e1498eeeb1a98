"""What llama-bench wrote, beside a roofline that is measured here: refused early, placed late."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from pathlib import Path

from perfsuite.cli.kept_folders import user_cache
from perfsuite.errors import PerfsuiteError
from perfsuite.expectation.roofline.bench_work import bench_points, bench_weights
from perfsuite.expectation.roofline.ceiling import CPU
from perfsuite.expectation.roofline.point import Point
from perfsuite.expectation.roofline.survey import Survey
from perfsuite.records.llama_bench import BenchRun
from perfsuite.records.llama_bench_file import read_llama_bench


def read_bench(path: Path, thread_counts: Collection[int], name_or_path: str | None) -> tuple[BenchRun, ...]:
    """Read what llama-bench wrote, and refuse what could not be placed.

    Raises `PerfsuiteError`: the file is none of llama-bench's, its weights are not known, or it ran on threads without
    ceilings.
    """
    runs = read_llama_bench(path)
    for run in runs:
        if run.n_threads not in thread_counts:
            accepted = ", ".join(map(str, sorted(thread_counts)))
            raise PerfsuiteError(
                f"--llama-bench={path}: {run.test} ran on {run.n_threads} threads, ceilings are of {accepted}; "
                "run llama-bench with -t of one of these"
            )
        bench_weights(run, cache_dir=user_cache() / "models", name_or_path=name_or_path)
    return runs


def placed(runs: Iterable[BenchRun], survey: Survey, name_or_path: str | None) -> tuple[Point, ...]:
    """Place each test under the processor's ceilings with its number of threads."""
    return tuple(
        point
        for run in runs
        for point in bench_points(
            [run], survey.of(CPU, run.n_threads), cache_dir=user_cache() / "models", name_or_path=name_or_path
        )
    )

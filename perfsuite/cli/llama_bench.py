"""``perfsuite llama-bench``."""

from __future__ import annotations

import argparse
from pathlib import Path

from perfsuite.cli.answer import Answer, Sheet, give
from perfsuite.cli.command_help import Commands, Row, add_command
from perfsuite.cli.kept_folders import user_cache
from perfsuite.records.llama_bench import BENCH_FORMS, BenchRun, bench_text, read_llama_bench, write_llama_bench
from perfsuite.units import format_bytes, format_count


def add_parser(commands: Commands) -> None:
    """Add the subcommand and its own subcommands."""
    parser = add_command(
        commands,
        "llama-bench",
        about="Neither action runs llama-bench.",
        examples={
            "perfsuite llama-bench export perf-run/run.json --output=bench.json": "a run, for compare-llama-bench.py",
            "perfsuite llama-bench show bench.json": "the tests in a file",
        },
        see=("docs/llama-bench.md",),
    )
    actions = parser.add_subparsers(required=True, metavar="ACTION")
    export = add_command(
        actions,
        "export",
        summary="write prefill and decode of a run as tests of llama-bench",
        examples={"perfsuite llama-bench export perf-run/run.json -o sql --output=bench.sql": "for a database"},
        options=[
            ("run_path RUN.json", "run.json of a run", Path),
            (f"-o {{{','.join(BENCH_FORMS)}}}", "format (default json)", None, "json", {"dest": "form"}),
            ("--output FILE", "file to write (default standard output)", Path),
            *BENCH_OPTIONS,
        ],
    )
    export.set_defaults(run=_export)
    add_command(
        actions,
        "show",
        summary="list the tests in a file of llama-bench",
        options=[("bench_path FILE", "file of llama-bench -o json, jsonl, csv or sql", Path)],
        run=_show,
    )


#: What says which model and build a run measured.
NAME_OPTIONS: tuple[Row, ...] = (
    ("--model GGUF", "model that the run measured, if the catalogue lacks it"),
    ("--build-commit NAME", "commit to name (default: the engine's)"),
)
#: And what chooses llama-bench's names for it.
BENCH_OPTIONS: tuple[Row, ...] = (
    *NAME_OPTIONS,
    ("--like FILE", "file of llama-bench for this model and machine, whose names to use", Path),
)


def exported_tests(path: Path, options: argparse.Namespace) -> tuple[BenchRun, ...]:
    """Return prefill and decode of a run as tests of llama-bench."""
    from perfsuite.report.llama_bench_export import bench_runs  # brings the cost models

    return tuple(
        bench_runs(
            path,
            cache_dir=user_cache() / "models",
            weights=options.model,
            build_commit=options.build_commit,
            like=read_llama_bench(options.like) if options.like else (),
        )
    )


def _export(options: argparse.Namespace) -> int:
    runs = exported_tests(options.run_path, options)
    if options.output is None:
        print(bench_text(runs, options.form), end="")
        return 0
    write_llama_bench(runs, options.output, form=options.form)
    print(f"{options.output}: {format_count(len(runs), 'test')}")
    return 0


def _show(options: argparse.Namespace) -> int:
    runs = read_llama_bench(options.bench_path)
    headings = ("weights", ">size", ">backend", ">threads", ">K/V", ">test", ">tokens/s", ">samples")
    rows = [
        (
            *(run.model_type, format_bytes(run.model_size), run.backends, run.n_threads, f"{run.type_k}/{run.type_v}"),
            *(run.test, f"{run.avg_ts:.2f} ± {run.stddev_ts:.2f}", len(run.samples_ns) or None),
        )
        for run in runs
    ]
    plain = [{"test": run.test, **run.to_plain()} for run in runs]
    return give(Answer(parts=[Sheet(headings, rows)], plain=plain), options)

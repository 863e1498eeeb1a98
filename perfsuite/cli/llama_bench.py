"""``perfsuite llama-bench``."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from perfsuite.cli.answer import Answer, Sheet, give
from perfsuite.cli.command_help import Commands, add_command, add_json
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
    _add_export(actions)
    shown = add_command(actions, "show", summary="list the tests in a file of llama-bench")
    shown.add_argument("bench_path", type=Path, metavar="FILE", help="file of llama-bench -o json, jsonl, csv or sql")
    add_json(shown)
    shown.set_defaults(run=_show)


def _add_export(actions: Commands) -> None:
    export = add_command(
        actions,
        "export",
        summary="write prefill and decode of a run as tests of llama-bench",
        examples={"perfsuite llama-bench export perf-run/run.json -o sql --output=bench.sql": "for a database"},
    )
    export.add_argument("run_path", type=Path, metavar="RUN.json", help="run.json of a run")
    export.add_argument("-o", dest="form", choices=BENCH_FORMS, default="json", help="format (default json)")
    export.add_argument("--output", type=Path, metavar="FILE", help="file to write (default standard output)")
    add_bench_options(export)
    export.set_defaults(run=_export)


def add_bench_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that choose llama-bench's names for a run."""
    parser.add_argument("--model", metavar="GGUF", help="model that the run measured, if the catalogue lacks it")
    parser.add_argument("--build-commit", metavar="NAME", help="commit to name (default: the engine's)")
    text = "file of llama-bench for this model and machine, whose names to use"
    parser.add_argument("--like", type=Path, metavar="FILE", help=text)


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
    give(
        Answer(parts=lambda: [_sheet(runs)], plain=lambda: [{"test": run.test, **run.to_plain()} for run in runs]),
        options,
    )
    return 0


def _sheet(runs: Sequence[BenchRun]) -> Sheet:
    headings = ("weights", ">size", ">backend", ">threads", ">K/V", ">test", ">tokens/s", ">samples")
    rows = [
        (
            *(run.model_type, format_bytes(run.model_size), run.backends, run.n_threads, f"{run.type_k}/{run.type_v}"),
            *(run.test, f"{run.avg_ts:.2f} ± {run.stddev_ts:.2f}", len(run.samples_ns) or None),
        )
        for run in runs
    ]
    return Sheet(headings, rows)

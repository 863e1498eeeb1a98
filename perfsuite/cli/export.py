"""``perfsuite export``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from perfsuite.cli.command_help import Commands, Row, add_command, add_options
from perfsuite.cli.kept_folders import user_cache
from perfsuite.cli.llama_bench import BENCH_OPTIONS, NAME_OPTIONS, exported_tests
from perfsuite.errors import PerfsuiteError
from perfsuite.records.llama_bench import bench_text
from perfsuite.records.run_file import read_run_file, run_path
from perfsuite.records.whole_file import write_whole_bytes
from perfsuite.report.exports import Export, all_exports
from perfsuite.report.visible import terminal_text
from perfsuite.units import format_count


@dataclass(frozen=True, slots=True)
class _Format:
    """One format: what it is called and for, and how its text is made from the options."""

    name: str
    summary: str
    text: Callable[[argparse.Namespace], str]
    takes_many: bool = True
    options: Sequence[Row] = ()


def add_parser(commands: Commands) -> None:
    """Add the subcommand and its formats."""
    parser = add_command(
        commands,
        "export",
        about="Nothing is measured or sent. Files for pytest-benchmark and llama.cpp's scripts hold one run.",
        examples={
            "perfsuite export markdown perf-run -o comment.md": "a comment for a pull request",
            "perfsuite export csv runs/monday runs/tuesday -o week.csv": "several runs in one table",
        },
        see=("docs/exports.md", "perfsuite llama-bench"),
    )
    formats = parser.add_subparsers(required=True, metavar="FORMAT", title="formats")
    first, *others = map(_of_runs, all_exports())  # pytest-benchmark and llama.cpp's, which hold one run a file, first
    for each in (first, *map(_bench, ("json", "jsonl", "sql")), _BACKEND_OPS, *others):
        _add_format(formats, each)


def _add_format(formats: Commands, each: _Format) -> None:
    about = f"{each.summary[0].upper()}{each.summary[1:]}."
    parser = formats.add_parser(each.name, help=each.summary, description=about)
    run = ("runs RUN", "folder or run.json of a run", Path, {"nargs": "+" if each.takes_many else 1})
    output = ("-o --output FILE", "file to write (default standard output)", Path)
    add_options(parser, run, output, *each.options)
    parser.set_defaults(run=lambda options: _export(each, options))


def _export(each: _Format, options: argparse.Namespace) -> int:
    content = each.text(options).encode("utf-8", "backslashreplace")  # half a character has no encoding
    if options.output is None:
        sys.stdout.flush()
        sys.stdout.buffer.write(content)
        return 0
    write_whole_bytes(options.output, content, PerfsuiteError)
    print(f"{terminal_text(str(options.output))}: {format_count(len(options.runs), 'run')} as {each.name}")
    return 0


def _of_runs(export: Export) -> _Format:
    def text(options: argparse.Namespace) -> str:
        chosen = {keyword: getattr(options, keyword) for keyword in export.flags}
        return export.text([read_run_file(named) for named in options.runs], **chosen)

    flags = [(flag, told, {"dest": keyword}) for keyword, (flag, told) in export.flags.items()]
    return _Format(export.name, export.summary, text, export.takes_many, flags)


def _bench(form: str) -> _Format:
    return _Format(
        f"llama-bench{'' if form == 'json' else f'-{form}'}",
        f"prefill and decode as llama-bench -o {form} writes them; one run",
        lambda options: bench_text(exported_tests(run_path(options.runs[0]), options), form),
        takes_many=False,
        options=BENCH_OPTIONS,
    )


def _backend_ops_text(options: argparse.Namespace) -> str:
    from perfsuite.report.backend_ops_export import backend_ops_sql  # brings the cost models

    return backend_ops_sql(
        run_path(options.runs[0]),
        cache_dir=user_cache() / "models",
        weights=options.model,
        build_commit=options.build_commit,
    )


_BACKEND_OPS = _Format(
    "backend-ops-sql",
    "operators as test-backend-ops perf --output sql writes them; one run",
    _backend_ops_text,
    takes_many=False,
    options=NAME_OPTIONS,
)

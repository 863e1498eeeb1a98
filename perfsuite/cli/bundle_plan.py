"""What ``perfsuite bundle --plan`` adds to a bundle: a folder for a device that only runs what is uploaded."""

from __future__ import annotations

import argparse
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from perfsuite.cli.answer import Answer, fields_of
from perfsuite.cli.bundle_farms import FARMS, write_farm
from perfsuite.cli.command_help import Parser
from perfsuite.cli.pytest_run import ask_pytest, refuse_mistakes, values_of
from perfsuite.device.work_folder import replace_folder, work_folder
from perfsuite.errors import DeviceError, PerfsuiteError
from perfsuite.records.codec import from_plain
from perfsuite.records.job import (
    BOARD,
    BUNDLES,
    MANIFEST_NAME,
    OLD,
    PLACE,
    REQUESTS,
    RESULTS,
    SCRIPT,
    Asked,
    Job,
    PytestArgument,
    sha256,
    write_job,
)
from perfsuite.records.whole_file import make_folder
from perfsuite.units import format_bytes

if TYPE_CHECKING:
    from perfsuite.measure.bundle.making import Bundle

#: Runs the folder wherever it lies; a folder for the answers may be named. It takes a POSIX shell and no more.
RUN_SCRIPT = f"""#!/bin/sh
# Measures what this folder asks for. Started again, it goes on where it was.
#     sh run.sh [FOLDER FOR THE ANSWERS]
here=$(cd "$(dirname "$0")" && pwd) || exit 1
worker=$here/{BUNDLES}/{BOARD}/perfsuite-worker
[ -x "$worker" ] || chmod 755 "$worker" || exit 1
exec "$worker" run-folder "$here" "${{1:-$here/{RESULTS}}}"
"""


def add_plan_options(parser: Parser) -> None:
    """Add what makes a folder of a bundle."""
    group = parser.add_argument_group("for a device farm")
    group.add_argument("--plan", action="store_true", help="write a run for a device that you can only upload to")
    text = "another llama.cpp, measured in pairs with that of --llama"
    group.add_argument("--old-llama", metavar="FOLDER|VERSION", help=text)
    text = "also write the files for this farm"
    group.add_argument("--farm", choices=FARMS, help=text)
    text = "options of pytest, after '--'"
    group.add_argument("pytest_options", nargs="*", metavar="OPTION", help=text)
    parser.behind_dashes = "pytest_options"


def refuse_out_of_place(options: argparse.Namespace) -> None:
    """Refuse options that say nothing together, before anything is compiled."""
    if not options.plan:
        others = {"--old-llama": options.old_llama, "--farm": options.farm}
        if given := [*options.pytest_options, *(name for name, value in others.items() if value)]:
            raise DeviceError(f"{given[0]}: says nothing without --plan")
        return
    if options.output is None:
        raise DeviceError("--plan: say where to write the folder: -o FOLDER")
    if (options.output / RESULTS).exists():
        raise DeviceError(f"{options.output}: holds answers already; ingest them, or name another folder with -o")
    if options.output.exists() and not (options.output / MANIFEST_NAME).is_file():
        raise DeviceError(f"{options.output}: is there already, and no folder of a plan; name another with -o")
    refuse_mistakes([*_pytest_arguments(options), f"--perf-plan={PLACE}"], typed=_typed(options, PLACE))


def _pytest_arguments(options: argparse.Namespace) -> tuple[str, ...]:
    """Return the options of pytest, each in one word."""
    given = list(options.pytest_options)
    words: list[str] = []
    while given:
        word = given.pop(0)
        words.append(word + given.pop(0) if word in ("-k", "-m") and given else word)
    for word in words:
        from_plain(word, PytestArgument, word, DeviceError, "give pytest no other")
    if options.old_llama is not None:
        words.append(f"--perf-against={PLACE / BUNDLES / OLD}")
    _device(words)
    return tuple(words)


def _device(words: list[str]) -> str:
    named = list(values_of(words, "--perf-device"))
    if len(named) != 1:
        raise DeviceError("--plan: name the device behind '--', as --device=NAME")
    return named[0]


def write_plan(options: argparse.Namespace, bundle: Bundle, old: Bundle | None) -> Answer:
    """Write the folder, whole or not at all, and return what it is.

    Raises PerfsuiteError: the run cannot be planned, for what it asks needs answers while it runs.
    """
    words, to = _pytest_arguments(options), options.output.absolute()
    try:
        make_folder(to.parent)
        with work_folder(to.parent) as work:
            draft = work / "plan"
            draft.mkdir()
            for name, each in ((BOARD, bundle), (OLD, old)):
                if each is not None:
                    shutil.copytree(each.folder, draft / BUNDLES / name)
            _plan_run(options, words, draft)
            job = _job(words, bundle, draft)
            write_job(draft, job)
            (draft / SCRIPT).write_text(RUN_SCRIPT)
            (draft / SCRIPT).chmod(0o755)
            replace_folder(draft, to)
        files = () if options.farm is None else write_farm(options.farm, to, job)
    except OSError as error:
        raise DeviceError(f"{error.filename or to}: cannot be written ({error.strerror}); make room there") from None
    size = sum(path.stat().st_size for path in to.rglob("*") if path.is_file())
    lines = (
        f"{options.output}: {format_bytes(size)} for {job.device}, {job.target}; {len(job.requests)} requests",
        f"built by {bundle.manifest.compiler} for {bundle.manifest.processor}: compare its times with plans built so, "
        "not with what 'perfsuite devices setup' builds",
        *(f"{path}: for {options.farm}" for path in files),
        f"there: sh {SCRIPT}; then here, with its {RESULTS}/: perfsuite ingest {options.output}",
    )
    plain = {
        "folder": str(options.output),
        "size_bytes": size,
        **fields_of(job, "device", "target"),
        "n_requests": len(job.requests),
        "farm_files": list(map(str, files)),
    }
    return Answer(parts=lambda: lines, plain=lambda: plain)


def _plan_run(options: argparse.Namespace, words: tuple[str, ...], draft: Path) -> None:
    """Let pytest write down what it would ask."""
    ask_pytest([*words, f"--perf-plan={draft}"], typed=_typed(options, draft))
    if not (draft / REQUESTS).is_dir():
        raise PerfsuiteError("--plan: this run asks nothing of the device; choose other cases behind '--'")


def _typed(options: argparse.Namespace, folder: Path) -> dict[str, str]:
    """Return what was typed for what pytest is given."""
    pairs = {"--against:": "--old-llama:", "leave out --against": "leave out --old-llama"}
    return {f"--perf-plan={folder}": "--plan", str(folder): "the folder", **(pairs if options.old_llama else {})}


def _job(words: tuple[str, ...], bundle: Bundle, draft: Path) -> Job:
    paths = sorted((draft / REQUESTS).iterdir())
    return Job(
        suite_version=bundle.manifest.suite_version,
        plan_schema=bundle.manifest.plan_schema,
        device=_device(list(words)),
        pytest_arguments=words,
        target=bundle.manifest.target,
        bundle_digest=bundle.manifest.digest,
        requests=tuple(Asked(name=path.name, sha256=sha256(path.read_bytes())) for path in paths),
    )

"""``perfsuite bundle``: a bundle, and with ``--plan`` a folder for a device that only runs what is uploaded."""

from __future__ import annotations

import argparse
import platform
import shutil
from dataclasses import replace
from pathlib import Path

from perfsuite.cli.answer import Answer, fields_of, give
from perfsuite.cli.bundle_farms import FARMS, write_farm
from perfsuite.cli.command_help import Commands, add_command, add_options, add_pytest_options, add_quiet, add_run
from perfsuite.cli.kept_folders import user_cache
from perfsuite.cli.progress import progress
from perfsuite.cli.pytest_run import ask_pytest, refuse_mistakes, values_of
from perfsuite.cli.run_options import BUNDLE_OPTIONS
from perfsuite.device.work_folder import replace_folder, work_folder
from perfsuite.errors import DeviceError, PerfsuiteError
from perfsuite.measure.bundle.llama_source import find_llama
from perfsuite.measure.bundle.making import Bundle, BundleOrder, copy_bundle, make_bundle, refuse_other_folder
from perfsuite.measure.bundle.targets import find_target, target_of
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
from perfsuite.report.visible import terminal_text
from perfsuite.units import format_bytes

#: Runs the folder wherever it lies; a folder for the answers may be named. It takes a POSIX shell and no more.
RUN_SCRIPT = f"""#!/bin/sh
# Measures what this folder asks for. Started again, it goes on where it was.
#     sh run.sh [FOLDER FOR THE ANSWERS]
here=$(cd "$(dirname "$0")" && pwd) || exit 1
worker=$here/{BUNDLES}/{BOARD}/perfsuite-worker
[ -x "$worker" ] || chmod 755 "$worker" || exit 1
exec "$worker" run-folder "$here" "${{1:-$here/{RESULTS}}}"
"""


def add_parser(commands: Commands) -> None:
    """Add the subcommand."""
    parser = add_command(
        commands,
        "bundle",
        about="""
        'perfsuite devices setup' does this and sends the bundle. A target takes some minutes the first time. A bundle
        has at most 40 MB.

        gcc needs a glibc on the device as new as here. zig ('pip install ziglang') needs glibc 2.31, and runs llama.cpp
        without OpenMP. A musl target runs in Android's shell, but without the vendor's OpenCL.

        With --plan, the folder also holds a model and run.sh, for a device that you can only upload to.
        """,
        examples={
            "perfsuite bundle --target aarch64-linux-gnu --llama ../llama.cpp -o out": "your checkout, for a board",
            "perfsuite bundle --target aarch64-linux-musl --plan -o job -- --device=pixel8pro": "for a phone of a farm",
        },
        writes="the folder of -o, and the cache",
        see=("docs/how-to/set-up-a-board.md", "docs/how-to/measure-on-a-farm.md", "perfsuite ingest"),
        options=[
            *BUNDLE_OPTIONS,
            ("--target TARGET", "such as aarch64-linux-gnu (default: this machine)"),
            ("-o --output FOLDER", "folder to write (default: in the cache; its path is printed)", Path),
            ("--opencl", "include llama.cpp's OpenCL backend"),
        ],
    )
    farm = parser.add_argument_group("for a device farm")
    add_options(
        farm,
        ("--plan", "write a run for a device that you can only upload to"),
        ("--old-llama FOLDER|VERSION", "another llama.cpp, measured in pairs with that of --llama"),
        (f"--farm {{{','.join(FARMS)}}}", "also write the files for this farm"),
    )
    add_pytest_options(parser, farm)
    add_run(parser, _bundle)
    add_quiet(parser)
    parser.set_defaults(makes_folder=True)


def _bundle(options: argparse.Namespace) -> int:
    target = find_target(options.target) if options.target else target_of(platform.machine(), has_glibc=True)
    order = BundleOrder(
        target=target,
        processor=target.processor(options.processor),
        compiler=options.compiler or ("gcc" if target.has_glibc else "zig"),
        llama=options.llama,
        has_opencl=options.opencl,
    )
    _refuse_out_of_place(options)
    if options.output is not None and not options.plan:
        refuse_other_folder(options.output)
    with progress("bundle", options) as tell:
        if options.old_llama is not None:
            find_llama(options.old_llama, user_cache(), tell.step)
        bundle = make_bundle(order, user_cache(), tell.step)
        if options.plan:
            old = None
            if options.old_llama is not None:
                old = make_bundle(replace(order, llama=options.old_llama), user_cache(), tell.step)
            tell.step("the plan")
            return give(_write_plan(options, bundle, old), options)
    if options.output is not None:
        copy_bundle(bundle, options.output)
    folder, manifest = options.output or bundle.folder, bundle.manifest
    needs = "no glibc" if manifest.least_glibc is None else f"glibc {manifest.least_glibc} or newer"
    lines = (
        f"{terminal_text(str(folder))}: {manifest.digest}, {format_bytes(manifest.size_bytes)}",
        f"{terminal_text(manifest.llama)}, build {manifest.engine.build_id}, by {manifest.compiler}",
        f"for {manifest.target}, {order.processor.name}; needs {needs}",
    )
    plain = {
        "folder": str(folder),
        **fields_of(manifest, "digest", "size_bytes", "llama", "compiler", "target", "least_glibc"),
        "engine_build_id": manifest.engine.build_id,
        "processor": order.processor.name,
    }
    return give(Answer(parts=lines, plain=plain), options)


def _refuse_out_of_place(options: argparse.Namespace) -> None:
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
    refuse_mistakes([*_pytest_arguments(options)[0], f"--perf-plan={PLACE}"], typed=_typed(options, PLACE))


def _pytest_arguments(options: argparse.Namespace) -> tuple[tuple[str, ...], str]:
    """Return the options of pytest, each in one word, and the device that they name."""
    given, words = list(options.pytest_options), list[str]()
    while given:
        word = given.pop(0)
        words.append(word + given.pop(0) if word in ("-k", "-m") and given else word)
    for word in words:
        from_plain(word, PytestArgument, word, DeviceError, "give pytest no other")
    if options.old_llama is not None:
        words.append(f"--perf-against={PLACE / BUNDLES / OLD}")
    named = list(values_of(words, "--perf-device"))
    if len(named) != 1:
        raise DeviceError("--plan: name the device behind '--', as --device=NAME")
    return tuple(words), named[0]


def _typed(options: argparse.Namespace, folder: Path) -> dict[str, str]:
    """Return what was typed for what pytest is given."""
    pairs = {"--against:": "--old-llama:", "leave out --against": "leave out --old-llama"}
    return {f"--perf-plan={folder}": "--plan", str(folder): "the folder", **(pairs if options.old_llama else {})}


def _write_plan(options: argparse.Namespace, bundle: Bundle, old: Bundle | None) -> Answer:
    """Write the folder, whole or not at all, and return what it is.

    Raises PerfsuiteError: the run cannot be planned, for what it asks needs answers while it runs.
    """
    to, manifest = options.output.absolute(), bundle.manifest
    try:
        make_folder(to.parent)
        with work_folder(to.parent) as work:
            draft = work / "plan"
            draft.mkdir()
            for name, each in ((BOARD, bundle), (OLD, old)):
                if each is not None:
                    shutil.copytree(each.folder, draft / BUNDLES / name)
            job = _planned_job(options, bundle, draft)
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
        f"built by {manifest.compiler} for {manifest.processor}: compare its times with plans built so, "
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
    return Answer(parts=lines, plain=plain)


def _planned_job(options: argparse.Namespace, bundle: Bundle, draft: Path) -> Job:
    """Let pytest write down what it would ask."""
    words, device = _pytest_arguments(options)
    ask_pytest([*words, f"--perf-plan={draft}"], typed=_typed(options, draft))
    if not (draft / REQUESTS).is_dir():
        raise PerfsuiteError("--plan: this run asks nothing of the device; choose other cases behind '--'")
    paths = sorted((draft / REQUESTS).iterdir())
    return Job(
        **fields_of(bundle.manifest, "suite_version", "plan_schema", "target"),
        device=device,
        pytest_arguments=words,
        bundle_digest=bundle.manifest.digest,
        requests=tuple(Asked(name=path.name, sha256=sha256(path.read_bytes())) for path in paths),
    )

"""``perfsuite bundle``."""

from __future__ import annotations

import argparse
import platform
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from perfsuite.cli.answer import Answer, fields_of, give
from perfsuite.cli.bundle_plan import add_plan_options, refuse_out_of_place, write_plan
from perfsuite.cli.command_help import Commands, add_command, add_json, add_quiet

if TYPE_CHECKING:
    from perfsuite.measure.bundle.making import Bundle, BundleOrder

_ABOUT = """
'perfsuite devices setup' does this and sends the bundle. A target takes some minutes the first time. A bundle has at
most 40 MB.

gcc needs a glibc on the device as new as here. zig ('pip install ziglang') needs glibc 2.31, and runs llama.cpp without
OpenMP. A musl target runs in Android's shell, but without the vendor's OpenCL.

With --plan, the folder also holds a model and run.sh, for a device that you can only upload to.
"""

_EXAMPLES = {
    "perfsuite bundle --target aarch64-linux-gnu --llama ../llama.cpp -o out": "your checkout, for a board",
    "perfsuite bundle --target aarch64-linux-musl --plan -o job -- --device=pixel8pro": "for a phone of a farm",
}


def add_parser(commands: Commands) -> None:
    """Add the subcommand."""
    parser = add_command(
        commands,
        "bundle",
        about=_ABOUT,
        examples=_EXAMPLES,
        writes="the folder of -o, and the cache",
        see=("docs/how-to/set-up-a-board.md", "docs/how-to/measure-on-a-farm.md", "perfsuite ingest"),
    )
    add_bundle_options(parser)
    parser.add_argument("--target", metavar="TARGET", help="such as aarch64-linux-gnu (default: this machine)")
    text = "folder to write (default: in the cache; its path is printed)"
    parser.add_argument("-o", "--output", type=Path, metavar="FOLDER", help=text)
    parser.add_argument("--opencl", action="store_true", help="include llama.cpp's OpenCL backend")
    add_plan_options(parser)
    add_json(parser)
    add_quiet(parser)
    parser.set_defaults(run=_run, makes_folder=True)


def add_bundle_options(parser: argparse._ActionsContainer) -> None:
    """Add what a bundle is made of, for whoever makes one."""
    text = "checkout of llama.cpp, or release of llama-cpp-python (default: the installed one)"
    parser.add_argument("--llama", metavar="FOLDER|VERSION", help=text)
    text = "features of the processor, such as armv8.2-a+dotprod or x86-64-v3"
    parser.add_argument("--processor", metavar="NAME", help=text)
    parser.add_argument(
        "--compiler", choices=("gcc", "zig"), help="compiler (default gcc, or zig if gcc's programs would not run)"
    )


def _run(options: argparse.Namespace) -> int:
    from perfsuite.cli.kept_folders import user_cache
    from perfsuite.cli.progress import progress
    from perfsuite.measure.bundle.llama_source import find_llama
    from perfsuite.measure.bundle.making import BundleOrder, copy_bundle, make_bundle, refuse_other_folder
    from perfsuite.measure.bundle.targets import find_target, target_of

    target = find_target(options.target) if options.target else target_of(platform.machine(), has_glibc=True)
    order = BundleOrder(
        target=target,
        processor=target.processor(options.processor),
        compiler=options.compiler or ("gcc" if target.has_glibc else "zig"),
        llama=options.llama,
        has_opencl=options.opencl,
    )
    refuse_out_of_place(options)
    if options.output is not None and not options.plan:
        refuse_other_folder(options.output)
    with progress("bundle", options) as tell:
        if options.old_llama is not None:
            find_llama(options.old_llama, user_cache(), tell.step)
        bundle = make_bundle(order, user_cache(), tell.step)
        if options.plan:
            old = None if options.old_llama is None else replace(order, llama=options.old_llama)
            old_bundle = None if old is None else make_bundle(old, user_cache(), tell.step)
            tell.step("the plan")
            give(write_plan(options, bundle, old_bundle), options)
            return 0
    if options.output is not None:
        copy_bundle(bundle, options.output)
    give(_answer(bundle, options.output or bundle.folder, order), options)
    return 0


def _answer(bundle: Bundle, folder: Path, order: BundleOrder) -> Answer:
    """Return what was made."""
    from perfsuite.report.visible import terminal_text
    from perfsuite.units import format_bytes

    manifest = bundle.manifest
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
    return Answer(parts=lambda: lines, plain=lambda: plain)

"""``perfsuite bundle`` (prepare): compile llama.cpp and the worker for a device into one folder."""

from __future__ import annotations

import argparse
import platform
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from perfsuite.cli.bundle_plan import add_plan_options, refuse_out_of_place, write_plan
from perfsuite.cli.command_help import Commands, add_command, add_quiet

if TYPE_CHECKING:
    from perfsuite.measure.bundle.making import Bundle, BundleOrder

_ABOUT = """
What a device without Python and without a compiler is measured with: llama.cpp's libraries, the recorders, the probes,
OpenCL's layers, and the program perfsuite-worker, compiled here for the device's processor. The folder has a manifest
with the hash of every file, is the same each time for the same sources and compiler, and has at most 40 MB.

'perfsuite devices setup' makes the bundle that a device needs and sends it there; this command makes one by itself.
Compiling llama.cpp takes some minutes a target, once; what is made is kept in the cache.

gcc is Debian's compiler for the target, whose programs need a glibc as new as this system's. zig is that of the package
ziglang from PyPI ('pip install ziglang'), whose programs run with glibc 2.31 and newer, or with musl; its llama.cpp has
threads of its own, and not OpenMP's. A bundle for musl takes musl's library along, from Debian's package for the
target, and runs where there is no C library at all, as in Android's shell; there it cannot open a vendor's OpenCL
library, which needs Android's.

With --plan it writes what a device needs that only runs what is uploaded, such as a phone of a farm: the bundle, all
that a run of pytest would ask of the device, the weights, and a script that does it there, run.sh. What that leaves in
results/ is judged by 'perfsuite ingest'. The options of pytest follow behind '--'.
"""

_EXAMPLES = {
    "perfsuite bundle --target aarch64-linux-gnu": "the llama.cpp that the suite requires, for a board with 64-bit Arm",
    "perfsuite bundle --target aarch64-linux-gnu --llama ../llama.cpp -o out": "a checkout's, into a folder",
    "perfsuite bundle --target aarch64-linux-gnu --compiler zig": "for a system with an older glibc",
    "perfsuite bundle --target aarch64-linux-musl": "for Alpine, and for Android's shell",
    "perfsuite bundle --processor native": "for this very machine",
    "perfsuite bundle --target aarch64-linux-musl --plan -o job -- --device=pixel8pro --threads=4": "for a phone",
    "perfsuite bundle --plan --farm lava -o job -- --device=rubikpi --threads=4": "with the file of a farm's job",
    "perfsuite bundle --plan --old-llama ../old -o job -- --device=rubikpi --threads=4": "two builds in pairs",
}


def add_parser(commands: Commands) -> None:
    """Add the subcommand."""
    parser = add_command(
        commands,
        "bundle",
        about=_ABOUT,
        examples=_EXAMPLES,
        writes="the folder that -o names, and the user's cache",
        see=("docs/how-to/set-up-a-board.md", "docs/how-to/measure-on-a-farm.md", "perfsuite ingest"),
    )
    add_bundle_options(parser)
    parser.add_argument("--target", metavar="TARGET", help="such as aarch64-linux-gnu (default: this machine's own)")
    text = "folder to write it to, whole or not at all (default: it stays in the cache, and its folder is printed)"
    parser.add_argument("-o", "--output", type=Path, metavar="FOLDER", help=text)
    parser.add_argument("--opencl", action="store_true", help="with llama.cpp's OpenCL backend")
    add_plan_options(parser)
    add_quiet(parser)
    parser.set_defaults(run=_run)


def add_bundle_options(parser: argparse._ActionsContainer) -> None:
    """Add what a bundle is made of, for whoever makes one."""
    text = (
        "a checkout of llama.cpp, or a release of llama-cpp-python such as 0.3.36 (default: the one that is required)"
    )
    parser.add_argument("--llama", metavar="FOLDER|VERSION", help=text)
    text = "what the processors there have, such as armv8.2-a+dotprod or x86-64-v3"
    parser.add_argument("--processor", metavar="NAME", help=text)
    parser.add_argument("--compiler", choices=("gcc", "zig"), help="default: gcc, and zig where gcc's would not run")


def _run(options: argparse.Namespace) -> int:
    from perfsuite.cli.kept_folders import user_cache
    from perfsuite.cli.progress import progress
    from perfsuite.measure.bundle.making import BundleOrder, copy_bundle, make_bundle
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
    with progress("bundle", options) as tell:
        bundle = make_bundle(order, user_cache(), tell.step)
        if options.plan:
            old = None if options.old_llama is None else replace(order, llama=options.old_llama)
            old_bundle = None if old is None else make_bundle(old, user_cache(), tell.step)
            tell.step("the plan")
            write_plan(options, bundle, old_bundle)
            return 0
    if options.output is not None:
        copy_bundle(bundle, options.output)
    _show(bundle, options.output or bundle.folder, order)
    return 0


def _show(bundle: Bundle, folder: Path, order: BundleOrder) -> None:
    """Print what was made."""
    from perfsuite.report.visible import terminal_text
    from perfsuite.units import format_bytes

    manifest = bundle.manifest
    needs = "no glibc" if manifest.least_glibc is None else f"glibc {manifest.least_glibc} or newer"
    print(f"{terminal_text(str(folder))}: {manifest.digest}, {format_bytes(manifest.size_bytes)}")
    print(f"{terminal_text(manifest.llama)}, build {manifest.engine.build_id}, by {manifest.compiler}")
    print(f"for {manifest.target}, {order.processor.name}; needs {needs}")

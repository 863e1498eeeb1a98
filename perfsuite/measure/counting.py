"""Counts what a bundle's worker does: runs it under a tool of Valgrind's in which time is the instructions so far."""

from __future__ import annotations

import platform
import shutil
import subprocess
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy.typing as npt

from perfsuite.device.work_folder import work_folder
from perfsuite.errors import NativeBuildError
from perfsuite.measure.debian_packages import VALGRIND, unpacked
from perfsuite.measure.launch import awaited_output, record_payload
from perfsuite.measure.native import OWN_COMPILERS, Compilers, build_program, source_root
from perfsuite.measure.plan import LlamaPlan, dump_plan
from perfsuite.records.bundle import read_manifest
from perfsuite.records.counts import read_rows

_TOOL = "perfsuite-counting"
_SOURCE = "src/counting/counting.c"

#: As Valgrind's own makefiles have it: a static program at an address that no other has.
_FLAGS = ("-fno-stack-protector", "-fno-strict-aliasing", "-fno-builtin", "-fno-pie", "-fno-pic", "-DVGO_linux=1")
_LINKS = (
    *("-static", "-no-pie", "-nodefaultlibs", "-nostartfiles", "-u", "_start"),
    *("-Wl,--build-id=none", "-Wl,-Ttext-segment=0x58000000"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Port:
    #: What Valgrind calls the machine.
    name: str
    flags: tuple[str, ...] = ()
    #: Of Valgrind's own.
    options: tuple[str, ...] = ()


_PORTS = {
    "x86_64": _Port(name="amd64"),
    # An exclusive store of the processor's own may fail for no reason of the program's, which then tries again.
    "aarch64": _Port(name="arm64", flags=("-mno-outline-atomics",), options=("--sim-hints=fallback-llsc",)),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class CountingTool:
    """The tool, ready to run."""

    #: Its program, in whose folder Valgrind finds all that is its own.
    program: Path
    #: What runs the program of another machine.
    emulator: tuple[str, ...]
    options: tuple[str, ...]


def build_counting_tool(
    cache_dir: Path, machine: str = "", tell: Callable[[str], object] = lambda _: None
) -> CountingTool:
    """Compile the tool into the cache, for this machine or for another one, which is then emulated.

    It is one Valgrind for everybody, for where it lays out memory decides some of what a program does.

    Raises NativeBuildError: Valgrind cannot be had for the machine; a compiler or the emulator is missing; or the tool
    does not compile.
    """
    machine = machine or platform.machine()
    port = _PORTS.get(machine)
    if port is None:
        raise NativeBuildError(f"counting: this machine is {machine}, expected {' or '.join(_PORTS)}; count on one")
    is_own = machine == platform.machine()
    emulator = () if is_own else (_emulator(machine),)
    gnu = f"{machine}-linux-gnu"
    valgrind = unpacked(VALGRIND[machine], cache_dir, tell) / "usr"
    macros = (f"-DVGA_{port.name}=1", f"-DVGP_{port.name}_linux=1", f"-DVGPV_{port.name}_linux_vanilla=1")
    libraries = valgrind / "lib" / gnu / "valgrind"
    archives = [str(libraries / f"lib{name}-{port.name}-linux.a") for name in ("coregrind", "vex", "gcc-sup")]
    root = source_root(_SOURCE)
    program = build_program(
        f"{_TOOL}-{port.name}-linux",
        (root / _SOURCE,),
        root / "include",
        cache_dir,
        extra=(*_FLAGS, *macros, *port.flags, "-isystem", str(valgrind / "include" / "valgrind")),
        links=(*_LINKS, "-Wl,--start-group", *archives, "-lgcc", "-Wl,--end-group"),
        identity=f"counting {VALGRIND[machine].file}",
        compilers=OWN_COMPILERS if is_own else Compilers(c=(f"{gnu}-gcc",), cxx=(f"{gnu}-g++",)),
    )
    preload = f"vgpreload_core-{port.name}-linux.so"  # what Valgrind itself loads into each process
    link = program.with_name(preload)
    with suppress(FileExistsError):
        link.symlink_to(valgrind / "libexec" / "valgrind" / preload)
    return CountingTool(program=program, emulator=emulator, options=port.options)


def run_counted(
    plan: LlamaPlan, bundle: Path, tool: CountingTool, *, limit_s: float
) -> tuple[dict[str, Any], npt.NDArray[Any]]:
    """Run a plan with a bundle's worker; return its payload, whose times are instructions, and the rows of counters.

    `plan` names no engine: the bundle's own runs. All names that the process is given are as long on each machine, for
    they lie on its stack: llama.cpp looks tensors up by their addresses.

    Raises MeasurementError: the worker failed, was killed, or ran past `limit_s`.
    """
    manifest = read_manifest(bundle)
    with work_folder() as folder:
        (folder / "bundle").symlink_to(bundle.absolute())
        (folder / "tool").symlink_to(tool.program.parent.absolute())
        (folder / "model.gguf").symlink_to(Path(plan.gguf_path).absolute())
        own = replace(
            plan,
            gguf_path="model.gguf",
            library_dir=f"bundle/{manifest.engine.library_dir}",
            engine_build_id=manifest.engine.build_id,
            cache_dir="",
            binds_threads=False,
        )
        (folder / "plan").write_bytes(dump_plan(own))
        command, environment = counted_command(
            replace(tool, program=Path("tool", tool.program.name)),
            ["bundle/lib/ld-musl.so", "bundle/lib/perfsuite-worker", "run", "plan", "record"],
        )
        process = subprocess.Popen(
            command,
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        output = awaited_output(process, limit_s, plan.task)
        record = folder / "record"
        payload = record_payload(own, record.read_bytes() if record.exists() else None, output)
        return payload, read_rows(folder / "rows")


def counted_command(tool: CountingTool, command: Sequence[str], rows: str = "rows") -> tuple[list[str], dict[str, str]]:
    """Return the command line that counts a command, and its whole environment; its rows go to a file."""
    counted = [*tool.emulator, str(tool.program), "-q", f"--tool={_TOOL}", *tool.options, f"--rows={rows}", *command]
    environment = {
        "VALGRIND_LIB": str(tool.program.parent),
        "VALGRIND_LAUNCHER": "/valgrind",  # as the program of that name says where it is itself
        "GGML_NO_BACKTRACE": "1",
    }
    return counted, environment


def _emulator(machine: str) -> str:
    names = f"qemu-{machine}-static", f"qemu-{machine}"
    found = next(filter(None, map(shutil.which, names)), None)
    if found is None:
        raise NativeBuildError(f"counting: no {names[0]} on the PATH; install Debian's qemu-user-static")
    return found

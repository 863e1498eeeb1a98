"""Counts what a bundle's worker does: runs it under a tool of Valgrind's in which time is the instructions so far."""

from __future__ import annotations

import platform
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy.typing as npt

from perfsuite.device.work_folder import work_folder
from perfsuite.errors import NativeBuildError
from perfsuite.measure.launch import awaited_output, record_payload
from perfsuite.measure.native import build_program, source_root
from perfsuite.measure.plan import LlamaPlan, dump_plan
from perfsuite.records.bundle import read_manifest
from perfsuite.records.counts import read_rows

_TOOL = "perfsuite-counting"
_PROGRAM = f"{_TOOL}-amd64-linux"
_SOURCE = "src/counting/counting.c"

#: What Valgrind itself loads into each process; the tool's folder has it too.
_PRELOADED = "vgpreload_core-amd64-linux.so"

#: Where Valgrind's headers and libraries lie: Debian's folders, and those of an installation of one's own.
_PREFIXES = (Path("/usr"), Path("/usr/local"))
_TODO = "install Valgrind 3.19 or newer with its headers, Debian's valgrind"

#: As Valgrind's own makefiles have it: a static program at an address that no other has.
_FLAGS = (
    *("-fno-stack-protector", "-fno-strict-aliasing", "-fno-builtin", "-fno-pie", "-fno-pic"),
    *("-DVGA_amd64=1", "-DVGO_linux=1", "-DVGP_amd64_linux=1", "-DVGPV_amd64_linux_vanilla=1"),
)
_LINKS = (
    *("-static", "-no-pie", "-nodefaultlibs", "-nostartfiles", "-u", "_start"),
    *("-Wl,--build-id=none", "-Wl,-Ttext-segment=0x58000000"),
)


def build_counting_tool(cache_dir: Path) -> Path:
    """Compile the tool into the cache; return its folder, where Valgrind finds it.

    Raises NativeBuildError: this machine is no x86-64, or has no Valgrind with headers; or the tool does not compile.
    """
    if platform.machine() != "x86_64":
        raise NativeBuildError(f"counting: this machine is {platform.machine()}, expected x86_64; count on one")
    includes = _found("include/valgrind/pub_tool_tooliface.h").parent
    preloaded = _found(f"libexec/valgrind/{_PRELOADED}", f"lib/valgrind/{_PRELOADED}")
    archives = [
        str(_found(*(f"{place}/valgrind/{name}" for place in ("lib/x86_64-linux-gnu", "lib", "libexec", "lib64"))))
        for name in ("libcoregrind-amd64-linux.a", "libvex-amd64-linux.a")
    ]
    root = source_root(_SOURCE)
    program = build_program(
        _PROGRAM,
        (root / _SOURCE,),
        root / "include",
        cache_dir,
        extra=(*_FLAGS, "-isystem", str(includes)),
        links=(*_LINKS, *archives, "-lgcc"),
        identity=f"counting {_valgrind_version()}",
    )
    link = program.with_name(_PRELOADED)
    if not link.is_symlink():
        link.symlink_to(preloaded)
    return program.parent


def run_counted(
    plan: LlamaPlan, bundle: Path, tool: Path, *, limit_s: float
) -> tuple[dict[str, Any], npt.NDArray[Any]]:
    """Run a plan with a bundle's worker; return its payload, whose times are instructions, and the rows of counters.

    `plan` names no engine: the bundle's own runs. All names that the process is given are as long on each machine, for
    they lie on its stack.

    Raises MeasurementError: the worker failed, was killed, or ran past `limit_s`.
    """
    manifest = read_manifest(bundle)
    with work_folder() as folder:
        (folder / "bundle").symlink_to(bundle.absolute())
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
            tool, ["bundle/lib/ld-musl.so", "bundle/lib/perfsuite-worker", "run", "plan", "record"]
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


def counted_command(tool: Path, command: Sequence[str], rows: str = "rows") -> tuple[list[str], dict[str, str]]:
    """Return the command line that counts a command, and its whole environment; its rows go to a file."""
    counted = [_valgrind(), "-q", f"--tool={_TOOL}", f"--rows={rows}", *command]
    return counted, {"VALGRIND_LIB": str(tool), "GGML_NO_BACKTRACE": "1"}


def _valgrind() -> str:
    if found := shutil.which("valgrind"):
        return found
    raise NativeBuildError(f"counting: no valgrind on the PATH; {_TODO}")


def _valgrind_version() -> str:
    done = subprocess.run([_valgrind(), "--version"], capture_output=True, text=True, timeout=60)
    return done.stdout.strip()


def _found(*names: str) -> Path:
    for prefix in _PREFIXES:
        for name in names:
            if (prefix / name).exists():
                return prefix / name
    raise NativeBuildError(f"counting: no {names[0]} below {' or '.join(map(str, _PREFIXES))}; {_TODO}")

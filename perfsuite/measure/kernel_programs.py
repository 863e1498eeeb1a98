"""Building the kernels' programs for a device, each once."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import cast

import pyopencl as cl

from perfsuite.errors import OpenClError
from perfsuite.measure.kernel_launches import LaunchForm
from perfsuite.records.whole_file import write_whole_bytes

#: A source and its options.
_Key = tuple[str, tuple[str, ...]]


class KernelPrograms:
    """The built programs and the kernels of one context.

    Kernel objects are kept: OpenCL makes a new one, with arguments to set again, at each request.
    """

    def __init__(self, context: cl.Context, *, kernels_dir: Path, log_dir: Path, built_dir: Path | None = None) -> None:
        """Build from the ``.cl`` files of a directory, each behind its preludes; logs go to ``log_dir``.

        What is built is kept in ``built_dir`` for the next process on the same device; it must be a folder of one run,
        for nothing there is ever outdated.
        """
        self._context = context
        self._built_dir = built_dir
        self._kernels_dir = kernels_dir
        self._log_dir = log_dir
        self._programs: dict[_Key, cl.Program] = {}
        self._kernels: dict[tuple[_Key, str], cl.Kernel] = {}

    def kernel(self, launch: LaunchForm, kernels_dir: Path | None = None) -> cl.Kernel:
        """Return the kernel of a launch, built when first asked for; `OpenClError` naming the log when it does not.

        With another directory it is of the sources there; where these are alike, it is the same kernel.
        """
        source = _source(kernels_dir or self._kernels_dir, *launch.preludes, launch.source)
        key = (source, tuple(launch.build_options))
        if key not in self._programs:
            self._programs[key] = self._build(launch, source)
        if (key, launch.entry) not in self._kernels:
            self._kernels[key, launch.entry] = self._entry(self._programs[key], launch)
        return self._kernels[key, launch.entry]

    def _build(self, launch: LaunchForm, source: str) -> cl.Program:
        options = launch.build_options
        try:
            return self._built(source, options)
        except cl.Error as error:
            raise self._build_error(launch, f"options: {' '.join(options)}\n{error}\n") from None

    def _built(self, source: str, options: list[str]) -> cl.Program:
        kept = None
        if self._built_dir is not None:
            kept = self._built_dir / f"{hashlib.sha256(repr((source, options)).encode()).hexdigest()[:32]}.bin"
            if kept.exists():
                return quietly_built(cl.Program(self._context, self._context.devices, [kept.read_bytes()]), options)
        program = quietly_built(cl.Program(self._context, source), options)
        if kept is not None:
            write_whole_bytes(kept, cast("list[bytes]", program.get_info(cl.program_info.BINARIES))[0], OpenClError)
        return program

    def _entry(self, program: cl.Program, launch: LaunchForm) -> cl.Kernel:
        try:
            return cl.Kernel(program, launch.entry)
        except cl.Error as error:
            raise self._build_error(launch, f"no kernel {launch.entry} in the program: {error}\n") from None

    def _build_error(self, launch: LaunchForm, log: str) -> OpenClError:
        device = self._context.devices[0].name.strip()
        path = self._log_dir / f"{Path(launch.source).stem}-{launch.entry}.build.log"
        self._log_dir.mkdir(parents=True, exist_ok=True)
        path.write_text(f"device: {device}\n{log}", encoding="utf-8")
        return OpenClError(f"kernel {launch.entry} of {launch.source} does not build for {device}; see {path}")


def _source(kernels_dir: Path, *parts: str) -> str:
    try:
        return "\n".join((kernels_dir / part).read_text(encoding="utf-8") for part in parts)
    except OSError as error:
        raise OpenClError(f"{error.filename}: {error.strerror}; expected the kernels' sources there") from None


@contextmanager
def opencl_errors(case_id: str, where: str = "") -> Iterator[None]:
    """Say of which case OpenCL refused something, and `where`."""
    try:
        yield
    except cl.Error as error:
        raise OpenClError(f"{case_id}: {first_line(error)}{where}") from None


def first_line(error: Exception) -> str:
    """Return what an error of OpenCL says first."""
    return (str(error).splitlines() or [type(error).__name__])[0]


def quietly_built(program: cl.Program, options: list[str]) -> cl.Program:
    """Build a program, whatever its driver says that is no error."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a build log that is not empty, which a driver's greeting makes
        program.build(options)
    return program

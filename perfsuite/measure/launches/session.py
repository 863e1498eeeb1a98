"""One plan's way to the native worker: what its launches are written with, and what comes back."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from perfsuite.errors import MeasurementError, OpenClError
from perfsuite.measure.engine_store import KERNELS_DIR
from perfsuite.measure.kernel_launches import LaunchForm
from perfsuite.measure.launches.judged_outputs import JudgedOutputs
from perfsuite.measure.launches.plan import DeviceLimits
from perfsuite.measure.launches.planning import LaunchWriter
from perfsuite.measure.opencl_platform import OpenClDevice
from perfsuite.measure.plan import Plan
from perfsuite.records.whole_file import write_whole_bytes
from perfsuite.workload.kernel_catalog import STANDARD_KERNELS, KernelCase

#: Runs a plan by the native worker and returns its payload.
RunPlan = Callable[[Plan], Mapping[str, Any]]
#: Returns the content of a file of the board's.
ReadThere = Callable[[Path], bytes]


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchSession:
    """A device, and who launches on it."""

    device: OpenClDevice
    limits: DeviceLimits
    run: RunPlan
    outputs: JudgedOutputs
    read_there: ReadThere
    #: Where logs of failed builds go, on this machine.
    log_dir: Path
    #: Where the worker's libraries are, on the board.
    cache_dir: str

    def writer(self, seed: int) -> LaunchWriter:
        """Return what writes launches down, which inputs a seed draws."""
        return LaunchWriter(device=self.device, seed=seed, known=lambda case: self.outputs.known(case, seed))

    def launched(
        self, writer: LaunchWriter, *, n_threads: int | None = None, built_dir: str | None = None
    ) -> Mapping[str, Any]:
        """Run what was written; raises `MeasurementError` where a kernel does not build, naming the log."""
        told = self.run(writer.plan(cache_dir=self.cache_dir, n_threads=n_threads, built_dir=built_dir))
        if (failed := told.get("unbuilt")) is None:
            return told
        raise unbuilt_error(writer.described[failed["launch"]], self.device, self.log_dir, failed["log"])

    def old_source(self, folder: Path, name: str) -> str:
        """Return the text of a file of kernels on the board; `OpenClError` where it is none."""
        try:
            return self.read_there(folder / name).decode("utf-8")
        except UnicodeDecodeError:
            raise OpenClError(f"{folder / name}: is not a text; expected the kernels' sources there") from None


def kept_log(log_dir: Path, name: str, device: OpenClDevice, log: str) -> Path:
    """Keep the log of a build that failed, and return where."""
    path = log_dir / f"{name}.build.log"
    write_whole_bytes(path, f"device: {device.device_name}\n{log}\n".encode(), MeasurementError)
    return path


def unbuilt_error(launch: LaunchForm, device: OpenClDevice, log_dir: Path, log: str) -> MeasurementError:
    """Keep the log of a kernel that does not build, and return the error that names it."""
    path = kept_log(log_dir, f"{Path(launch.source).stem}-{launch.entry}", device, log)
    where = f"kernel {launch.entry} of {launch.source}"
    return MeasurementError(f"{where} does not build for {device.device_name}; see {path}")


def own_source(name: str) -> str:
    """Return the text of a file of the suite's own kernels."""
    return (KERNELS_DIR / name).read_text(encoding="utf-8")


def standard_kernels(case_ids: Sequence[str]) -> tuple[KernelCase, ...]:
    """Return the cases of the catalogue that these ids name, in its order."""
    return tuple(case for case in STANDARD_KERNELS if case.case_id in case_ids)

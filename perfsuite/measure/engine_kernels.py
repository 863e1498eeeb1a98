"""Which launches of an evaluation are duplicated: each kernel at each size of its index space, the longest first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from perfsuite.records.opencl_commands import CommandFlag, CommandType, OpenClTrace


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineKernel:
    """A kernel at one size of its index space, and which launch of it to duplicate."""

    phase: str
    name: str
    #: Work-items by dimension.
    global_size: tuple[int, ...]
    #: Launches of this name that come before it in an evaluation.
    skip: int
    #: END - START of that launch.
    execution_ns: int

    @property
    def title(self) -> str:
        """Phase, name and size, such as ``kernel/engine/decode/kernel_add/576x1x1``."""
        return f"kernel/engine/{self.phase}/{self.name}/{'x'.join(map(str, self.global_size))}"


def kernels_since(trace: OpenClTrace, since_ns: int, phase: str) -> tuple[EngineKernel, ...]:
    """List the kernels launched from a host time on, each name and size once, by the first launch that has a time."""
    commands = trace.commands
    is_kernel = (commands["type"] == CommandType.KERNEL) & (commands["host_start_ns"] >= since_ns)
    found: dict[tuple[str, tuple[int, ...]], EngineKernel] = {}
    launched: Counter[str] = Counter()
    for row in commands[is_kernel]:
        name = trace.names[int(row["name"])]
        size = tuple(int(each) for each in row["global"][: max(1, int(row["work_dim"]))])
        if (name, size) not in found and not row["flags"] & CommandFlag.NO_PROFILE:
            found[name, size] = EngineKernel(
                phase=phase,
                name=name,
                global_size=size,
                skip=launched[name],
                execution_ns=int(row["end_ns"]) - int(row["start_ns"]),
            )
        launched[name] += 1
    return tuple(found.values())


def longest_kernels(
    kernels: Sequence[EngineKernel], *, least_ns: int, n_kernels: int, names: Sequence[str] = ()
) -> tuple[EngineKernel, ...]:
    """Return the `n_kernels` longest of at least `least_ns`, of the given names where there are any."""
    wanted = [each for each in kernels if each.execution_ns >= least_ns and (not names or each.name in names)]
    return tuple(sorted(wanted, key=lambda each: -each.execution_ns)[:n_kernels])

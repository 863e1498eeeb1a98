"""A plan that launches kernels of OpenCL, and says all that there is to know of them: the worker knows none by name."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any

from perfsuite.measure.plan import DevicesPlan, DuplicationPlan, KernelPlan, OpenClCeilingsPlan, Plan
from perfsuite.records.codec import Positive

if TYPE_CHECKING:
    from perfsuite.measure.opencl_platform import OpenClDevice

#: What `perfsuite.measure.launches.own_kernels` answers by launches.
LAUNCHED = (DevicesPlan, KernelPlan, DuplicationPlan, OpenClCeilingsPlan)


class ContentKind(str, Enum):
    """How a buffer's values are made of draws."""

    #: F32 of mean 0 and standard deviation 1, times a scale, plus an offset.
    FLOATS = "floats"
    #: Bytes, of which a repeated mask keeps some bits.
    BITS = "bits"
    #: Whole numbers of 32 bits below a limit.
    WHOLES = "wholes"
    #: F32 that counts up from the offset, and begins again at a limit.
    CYCLE = "cycle"


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """The values of one buffer."""

    kind: ContentKind
    #: Below 2**63.
    seed: int = 0
    n_bytes: int
    #: Of `ContentKind.FLOATS`: powers of two and whole numbers, so that no rounding depends on who computes.
    scale: float = 1.0
    offset: float = 0.0
    #: Of `ContentKind.BITS`.
    mask: bytes = b"\xff"
    #: Of `ContentKind.WHOLES` and `ContentKind.CYCLE`.
    limit: int = 0
    #: What the array is: its type as NumPy names it, and its shape.
    dtype: str
    shape: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceListPlan(Plan):
    """List the OpenCL devices, by the native worker."""

    task = "opencl_devices"
    cache_dir: str
    #: A layer that the environment names: whether OpenCL's loader brings it in is answered, too.
    layer: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceLimits:
    """What an OpenCL device can do, beside what `OpenClDevice` says of it."""

    #: Their names, with blanks between them.
    extensions: str
    #: Most that one buffer may have.
    allocation_bytes: int
    #: Most items of a work-group, and of each axis of one.
    group_items: int
    axis_items: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchProgram:
    """A program of OpenCL C that is built once."""

    source: str
    options: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedLaunch:
    """A kernel with its arguments, in the order inputs, output, scalars; the output is F32."""

    #: What errors call it.
    name: str
    #: The place of its program in the plan, and the kernel in that.
    program: int
    entry: str
    #: What the buffers hold that it reads.
    contents: tuple[Content, ...]
    #: Whether it writes to them, too.
    are_inputs_written: bool = False
    n_outputs: int
    #: Another launch of the same contents, before it in the plan, whose buffers it has: where these lie is no
    #: difference between the two.
    beside: int | None = None
    #: The bytes of each scalar; in rounds the last one is how many passes it makes, of 32 bits.
    scalars: tuple[bytes, ...]
    global_size: tuple[int, ...]
    local_size: tuple[int, ...] | None


class StepKind(str, Enum):
    """What is done with launches."""

    #: One launch on a poisoned output, whose content is the answer, with SHA-256 of the inputs that it writes to.
    OUTPUT = "output"
    #: Kernels that are launched in rounds, each launch waited for, the sides of a kernel in turns: the times of all
    #: launches, and how many of each kernel a round has, are the answer.
    TURNS = "turns"
    #: Launches between two ``clFinish``: the host's time between these, and the times of all, are the answer.
    BURST = "burst"
    #: Launches in rounds, each of as many passes as last long enough: these, and the fastest of each round, are the
    #: answer; of a launch that cannot be made, why not.
    ROUNDS = "rounds"


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchStep:
    """What is done next."""

    kind: StepKind
    #: Places of launches in the plan; in turns the sides of a kernel, one or two, follow each other.
    launches: tuple[int, ...]
    #: How many of each; in rounds of each round, and in turns of each round at most.
    n_launches: int = 1
    #: In turns: launches that say how long a kernel takes, how many a round has at least, and by round and kernel which
    #: side is first.
    n_warm_up: int = 0
    n_turns: int = 0
    leaders: tuple[tuple[int, ...], ...] = ()
    #: In turns and in rounds: how many rounds at least, once the budget is spent, which is the whole plan's.
    n_least: int = 0
    budget_ns: int = 0
    #: In rounds: how long a launch lasts at least.
    target_ns: int = 0
    #: Whether the answer may be why there is none, of a kernel that does not build or that the device refuses.
    may_fail: bool = False
    #: SHA-256 of outputs that need not be answered again.
    known_outputs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchSessionPlan(Plan):
    """Launches on one device as somebody asks for them, line by line, until nobody does any more."""

    task = "launch_session"
    #: As in a `LaunchesPlan`; `device_of` gives them.
    platform_index: int
    device_index: int
    platform_name: str
    device_name: str
    #: Longest that it may be silent at one step.
    step_limit_s: Positive
    cache_dir: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchesPlan(Plan):
    """Launches on one device, step by step; a launch has its buffers from its first step to its last."""

    task = "launches"
    #: The device by its place, and what it is called there.
    platform_index: int
    device_index: int
    platform_name: str
    device_name: str
    programs: tuple[LaunchProgram, ...]
    launches: tuple[PlannedLaunch, ...]
    steps: tuple[LaunchStep, ...]
    #: A folder of this run in which processes keep what they have built for those after them.
    built_dir: str | None = None
    #: Threads of the sentinels, which follow the steps; None for no sentinels.
    n_threads: int | None
    #: Where the compiled native library of the sentinels is kept.
    cache_dir: str


def device_of(device: OpenClDevice) -> dict[str, Any]:
    """Return the fields of a plan that name its device."""
    return {name: getattr(device, name) for name in ("platform_index", "device_index", "platform_name", "device_name")}

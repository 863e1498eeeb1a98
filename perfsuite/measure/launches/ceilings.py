"""The ceilings of an OpenCL device: how fast it reads and writes each of several working sets, and computes.

Bandwidth counts all arrays: one that is read, two of a copy, three of ``a = b + c / 1024``. Each item passes over its
own part of the working set again and again, as threads with caches of their own do. Arithmetic is many chains of
``acc = acc * x + y``, 2 FLOPs each, in F32 and, with ``cl_khr_fp16``, in F16. An ``int8`` step adds the dot product of
four signed bytes to 32 bits, 8 FLOPs, by ``dot`` of ``cl_khr_integer_dot_product`` or by shifts and multiplications of
vectors, whichever is faster: a compiler that takes ``dot`` apart, as those for CPUs do, gives much less than the
processor's own instruction would.

Rates are those of the fastest of vectors of 4, 8 and 16 values, by the time between START and END of a launch's event.
Everything is one plan: each kernel's output is answered beside its times, which count where that is right.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

import numpy as np
from numpy.typing import NDArray

from perfsuite.errors import OpenClError
from perfsuite.expectation.roofline.ceiling import Ceiling, Rate
from perfsuite.measure.launches.contents import counted, drawn_array
from perfsuite.measure.launches.plan import LaunchStep, PlannedLaunch, StepKind
from perfsuite.measure.launches.session import LaunchSession, LaunchWriter, kept_log, own_source
from perfsuite.measure.opencl_ceiling_work import (
    EXTENSIONS,
    FLOAT_BYTES,
    SMALL_LIMIT,
    SOURCE,
    TRIED_PASSES,
    Cut,
    Kind,
    aligned,
    all_kinds,
    ceiling_of,
    chained,
    cut_for,
    is_sum_right,
    operands,
    standard_working_sets,
    stream_bytes,
    stream_count,
    streamed,
)
from perfsuite.measure.plan import OpenClCeilingsPlan

#: Each kind of work has at least this many rounds, whatever the budget.
_MIN_ROUNDS = 5
#: Launches of each way in a round; the first may find the caches full of another's work.
_REPETITIONS = 2
#: A launch lasts this share of the budget, this time, or one pass, whichever is longest: long against its own cost.
_LAUNCH_SHARE, _LEAST_LAUNCH_NS = 1 / 2000, 200_000

#: A part of the source with a width, for a kind of work: what is built and tried once for all working sets.
_Kernel = tuple[str, str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Way:
    """One way to do a kind of work."""

    kernel: _Kernel
    #: Bytes or FLOPs of one pass.
    amount: float


def opencl_ceilings(
    plan: OpenClCeilingsPlan, session: LaunchSession, working_sets_bytes: Sequence[int] | None = None
) -> dict[str, Any]:
    """Return the payload of an `OpenClCeilingsPlan`; of memory that the device refuses, the half is tried."""
    began_ns = time.monotonic_ns()
    sets = tuple(working_sets_bytes or standard_working_sets(session.device, session.limits.allocation_bytes))
    memory_bytes = aligned(max(sets))
    while True:
        left_ns = max(0, plan.budget_ms * 1_000_000 - (time.monotonic_ns() - began_ns))
        planned = _PlannedCeilings(session, sets, memory_bytes, left_ns)
        told = session.launched(planned.writer)
        refused = planned.memory_refused(told["steps"])
        if refused is None:
            ceilings = planned.ceilings(told["steps"])
            return {"ceilings": [each.to_plain() for each in ceilings], "contention": told["contention"]}
        memory_bytes = aligned(memory_bytes // 2)
        if not memory_bytes:
            raise OpenClError(f"the device gives no memory: {refused}")


class _PlannedCeilings:
    """All ways on a device with so much memory, written down, and what their answers say."""

    def __init__(self, session: LaunchSession, sets: Sequence[int], memory_bytes: int, budget_ns: int) -> None:
        """Write all of it, with rounds that end with the budget."""
        self._session, self._memory_bytes = session, memory_bytes
        self._cut: Cut = cut_for(session.device, session.limits.group_items)
        self._extensions = frozenset(session.limits.extensions.split())
        self.writer: LaunchWriter = session.writer(0)
        self._source = own_source(SOURCE)
        #: By kernel: the step that tries it.
        self._tried: dict[_Kernel, int] = {}
        #: By kind of work: its ways, in the order of the rounds' launches, or why there is none.
        self._kinds: dict[Kind, list[_Way] | str] = {}
        self._launches: list[int] = []
        self._first: dict[bool, int] = {}
        for kind, parts in all_kinds(sets):
            self._kinds[kind] = self._ways(kind, parts)
        self._rounds = self.writer.step(
            LaunchStep(
                kind=StepKind.ROUNDS,
                launches=tuple(self._launches),
                n_launches=_REPETITIONS,
                n_least=_MIN_ROUNDS,
                budget_ns=budget_ns,
                target_ns=max(_LEAST_LAUNCH_NS, round(budget_ns * _LAUNCH_SHARE)),
            )
        )

    def memory_refused(self, steps: Sequence[Mapping[str, Any]]) -> str | None:
        if True not in self._first:
            return None
        told = steps[self._rounds]["ways"][self._launches.index(self._first[True])]
        return str(told["refused"]) if told.get("is_memory") else None

    def ceilings(self, steps: Sequence[Mapping[str, Any]]) -> list[Ceiling]:
        problems = {kernel: self._problem(kernel, steps[step]) for kernel, step in self._tried.items()}
        answers = iter(steps[self._rounds]["ways"])
        found = []
        for kind, ways in self._kinds.items():
            rate = ways if isinstance(ways, str) else self._rate([(way, next(answers)) for way in ways], problems)
            found.append(ceiling_of(self._session.device, kind, rate))
        return found

    def _ways(self, kind: Kind, parts: Sequence[tuple[str, int]]) -> list[_Way] | str:
        """Add the ways of a kind of work, or return why the last of those that cannot be tried cannot."""
        size = kind.working_set_bytes
        if size is not None and size > self._memory_bytes:
            return f"the device gave {self._memory_bytes} bytes of memory, {size} are needed"
        lacking = [name for part, _ in parts if (name := EXTENSIONS.get(part)) and name not in self._extensions]
        able = [(part, width) for part, width in parts if EXTENSIONS.get(part) not in lacking or part not in EXTENSIONS]
        if not able:
            return f"the device has no {lacking[-1]}"
        return [self._way(kind, part, width) for part, width in able]

    def _way(self, kind: Kind, part: str, width: int) -> _Way:
        kernel = (kind.kind, part, width)
        if kernel not in self._tried:
            launch = self._tried_stream(kernel) if part == "STREAM" else self._tried_chains(kernel)
            self._tried[kernel] = self._try(kernel, launch)
        if kind.working_set_bytes is None:
            self._add(kernel, (), (*operands(part), np.uint32(1)), self._cut.arithmetic_items)
            return _Way(kernel=kernel, amount=self._cut.chain_flops(part, width))
        count = stream_count(kind.kind, width, kind.working_set_bytes)
        ones = counted(1, self._memory_bytes // FLOAT_BYTES, offset=1.0)
        self._add(kernel, (ones,), (np.uint32(count), np.uint32(1)), self._cut.stream_items)
        return _Way(kernel=kernel, amount=stream_bytes(kind.kind, width, count))

    def _add(self, kernel: _Kernel, contents: tuple[Any, ...], scalars: tuple[Any, ...], n_items: int) -> None:
        """Add a launch to the rounds; all that stream have the same memory, all others the same sums."""
        beside = self._first.get(bool(contents))
        launch = self._launch(kernel, () if beside is not None else contents, scalars, n_items, beside=beside)
        self._first.setdefault(bool(contents), launch)
        self._launches.append(launch)

    def _tried_stream(self, kernel: _Kernel) -> int:
        _, _, width = kernel
        count = self._cut.tried_count(width, self._memory_bytes)
        small = counted(SMALL_LIMIT, 4 * count * width)
        return self._launch(kernel, (small,), (np.uint32(count), np.uint32(TRIED_PASSES)), self._cut.tried_items())

    def _tried_chains(self, kernel: _Kernel) -> int:
        scalars = (*operands(kernel[1]), np.uint32(TRIED_PASSES))
        return self._launch(kernel, (), scalars, self._cut.arithmetic_items)

    def _launch(
        self,
        kernel: _Kernel,
        contents: tuple[Any, ...],
        scalars: tuple[Any, ...],
        n_items: int,
        beside: int | None = None,
    ) -> int:
        kind, part, width = kernel
        entry = f"stream_{kind}" if part == "STREAM" else f"chains_{kind}"
        return self.writer.planned(
            PlannedLaunch(
                name=f"kernel {entry}",
                program=self.writer.program(self._source, self._cut.options(part, width)),
                entry=entry,
                contents=contents,
                are_inputs_written=part == "STREAM",
                n_outputs=n_items,
                beside=beside,
                scalars=tuple(each.tobytes() for each in scalars),
                global_size=(n_items,),
                local_size=(self._cut.group,),
            )
        )

    def _try(self, kernel: _Kernel, launch: int) -> int:
        known = () if kernel[1] == "STREAM" else (_digest(self._chains(kernel)),)
        return self.writer.step(
            LaunchStep(kind=StepKind.OUTPUT, launches=(launch,), known_outputs=known, may_fail=True)
        )

    def _chains(self, kernel: _Kernel) -> NDArray[Any]:
        _, part, width = kernel
        return chained(part, self._cut.arithmetic_items, self._cut.accumulators, width)

    def _problem(self, kernel: _Kernel, told: Mapping[str, Any]) -> str | None:
        if "refused" in told:
            return str(told["refused"])
        kind, part, width = kernel
        if "unbuilt" in told:
            path = kept_log(
                self._session.log_dir, f"ceilings-{part.lower()}{width}", self._session.device, told["unbuilt"]
            )
            return f"part {part} of {SOURCE} does not build; see {path}"
        is_right = told["is_guard_whole"] and (
            self._is_stream_right(kernel, told) if part == "STREAM" else told["sha256"] == _digest(self._chains(kernel))
        )
        entry = "stream" if part == "STREAM" else "chains"
        return None if is_right else f"kernel {entry}_{kind} with vectors of {width} computes wrongly"

    def _is_stream_right(self, kernel: _Kernel, told: Mapping[str, Any]) -> bool:
        kind, _, width = kernel
        size = self._cut.tried_count(width, self._memory_bytes) * width
        before = drawn_array(counted(SMALL_LIMIT, 4 * size))
        sums = np.frombuffer(told["output"], np.float32)
        return list(told["inputs"]) == [_digest(streamed(before, kind, size))] and is_sum_right(
            kind, sums, before, size
        )

    def _rate(
        self, told: Sequence[tuple[_Way, Mapping[str, Any]]], problems: Mapping[_Kernel, str | None]
    ) -> Rate | str:
        """Return the rate of the fastest of the ways that are right, or why the last of the others is none."""
        reason, rates = "there is no way to do it", []
        for way, answer in told:
            problem = problems[way.kernel] or answer.get("unbuilt") or answer.get("refused")
            if problem is not None:
                reason = problem
                continue
            amount = way.amount * answer["passes"] * 1e9
            rates.append([amount / each if each > 0 else 0.0 for each in answer["best_ns"]])
        return _rate_of([max(each) for each in zip(*rates, strict=True)], reason)


def _rate_of(bests: Sequence[float], reason: str) -> Rate | str:
    measured = [best for best in bests if best > 0.0]
    if not measured:
        return "the device's clock did not move" if bests else reason
    return Rate(best_per_s=max(measured), median_per_s=median(measured), n_rounds=len(measured))


def _digest(values: NDArray[Any]) -> str:
    return hashlib.sha256(values.tobytes()).hexdigest()

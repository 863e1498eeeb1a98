"""Compare the native worker with the one in Python: phases in turns of two processes, and how long each takes to start.

    .venv/bin/python tools/worker_pairs.py [--pairs=20] [--model=smollm2-135m-q8_0]

Each pair of processes is fresh; the two take turns in ABBA order. It ends with the ratios, native over Python, with
their intervals at 95 %.
"""

from __future__ import annotations

import argparse
import contextlib
import random
import statistics
import sys
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

import platformdirs

from perfsuite.device.work_folder import work_folder
from perfsuite.expectation.cases import llama_workload
from perfsuite.measure.engine import find_engine
from perfsuite.measure.launch import READY_MARK
from perfsuite.measure.llama_plan import llama_plan, with_drawn_layout
from perfsuite.measure.plan import LlamaPlan, TurnsPlan
from perfsuite.measure.turns import turn_order
from perfsuite.measure.worker_lines import WaitingWorker
from perfsuite.records.events import EngineRecord, Phase
from perfsuite.verdict.paired import paired_ratio
from perfsuite.workload.scenario import find_scenario
from perfsuite.workload.weights import materialize, resolve

_PHASES = (Phase.PREFILL, Phase.DECODE, Phase.END_TO_END)
_LIMIT_S = 600.0

_Recorded = tuple[EngineRecord, float]


def main() -> int:
    """Measure, and print a line for each phase; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, default=20)
    parser.add_argument("--turns", type=int, default=8)
    parser.add_argument("--model", default="smollm2-135m-q8_0")
    parser.add_argument("--threads", type=int, default=2)
    asked = parser.parse_args()
    cache_dir = Path(platformdirs.user_cache_dir("perfsuite"))
    weights = resolve(asked.model, cache_dir=cache_dir / "models")
    plan = llama_plan(
        llama_workload(weights, find_scenario("siso")),
        find_engine(),
        gguf_path=materialize(weights, cache_dir=cache_dir / "models"),
        cache_dir=cache_dir,
        n_threads=asked.threads,
    )
    order = random.Random()
    python_ns: dict[Phase, list[int]] = defaultdict(list)
    native_ns: dict[Phase, list[int]] = defaultdict(list)
    starts_s: tuple[list[float], list[float]] = ([], [])
    for pair in range(asked.pairs):
        native, other = _pair(with_drawn_layout(plan, order), asked.turns, leader=pair % 2)
        for phase in _PHASES:
            python_ns[phase].append(_phase_ns(other[0], phase))
            native_ns[phase].append(_phase_ns(native[0], phase))
        starts_s[0].append(native[1])
        starts_s[1].append(other[1])
        print(f"pair {pair + 1} of {asked.pairs}", end="\r", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    for phase in _PHASES:
        ratio = paired_ratio(python_ns[phase], native_ns[phase], confidence=0.975)
        print(f"{phase.value:12} {ratio.median_ratio:.4f} ({ratio.lower_ratio:.4f} to {ratio.upper_ratio:.4f})")
    for name, each in zip(("native", "python"), starts_s, strict=True):
        print(f"start, {name}: {statistics.median(each) * 1000:.0f} ms until the engine begins to load")
    return 0


def _pair(plan: LlamaPlan, n_turns: int, *, leader: int) -> tuple[_Recorded, _Recorded]:
    """Let a native worker (0) and one in Python (1) take turns; return what each recorded, and its time to start, s."""
    deadline_s = time.monotonic() + _LIMIT_S
    turns = TurnsPlan(llama=plan)
    with work_folder() as folder, contextlib.ExitStack() as stack:
        workers: dict[int, tuple[WaitingWorker, float]] = {}
        for place in (leader, 1 - leader):
            (own := folder / str(place)).mkdir()
            begun_s = time.monotonic()
            worker = WaitingWorker(turns, own, {}, is_native=place == 0)
            stack.enter_context(contextlib.closing(worker))
            worker.answer(READY_MARK, lambda: deadline_s)
            workers[place] = (worker, begun_s)
        for place in turn_order(n_turns, leader):
            workers[place][0].tell("", deadline_s)
            workers[place][0].answer(READY_MARK, lambda: deadline_s)
        found = [_ended(*workers[place], deadline_s) for place in (0, 1)]
        return found[0], found[1]


def _ended(worker: WaitingWorker, begun_s: float, deadline_s: float) -> _Recorded:
    worker.end_input()
    worker.answer(None, lambda: deadline_s)
    payload: dict[str, Any] = worker.payload()
    record = EngineRecord.from_plain(payload["engine"])
    (load, *_) = (span for span in record.spans if span.phase is Phase.LOAD)
    return record, load.start_ns / 1e9 - begun_s


def _phase_ns(record: EngineRecord, phase: Phase) -> int:
    """Return the median of a phase over the repetitions, a repetition's steps summed up."""
    sums: dict[int, int] = defaultdict(int)
    for span in record.spans:
        if span.phase is phase:
            sums[span.repetition] += span.duration_ns
    return round(statistics.median(sums.values()))


if __name__ == "__main__":
    sys.exit(main())

"""Compares how two trees of the suite measure one workload: `Board.run` of each, alternating, in random order.

    python tools/compare_trees.py OLD NEW [PAIRS]    # folders of two checkouts, each with its .venv

Each tree has one process that stays, with a lock folder of its own. It prints the ratio of each phase, new over old,
and of the whole run as its caller waits for it, with 95 % intervals.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import platformdirs

from perfsuite.device.machine import NO_CONDITIONS, default_threads
from perfsuite.device.reach import Reach
from perfsuite.expectation.llama_workload import llama_workload
from perfsuite.measure.board.opening import choose_board, desk_claim
from perfsuite.measure.engine import find_engine
from perfsuite.measure.llama_plan import llama_plan
from perfsuite.records.events import EngineRecord
from perfsuite.verdict.pairs import compare_pairs
from perfsuite.workload.scenario import find_scenario
from perfsuite.workload.weights import materialize, resolve

#: The tail of each bound of a 95 % interval.
_ALPHA = 0.025


def measure() -> None:
    """Run the workload once for each line that comes in; print the mean of each phase's faster half, ns."""
    cache, reach = Path(platformdirs.user_cache_dir("perfsuite")), Reach(way="local")
    claim = desk_claim("host", reach, purpose="compare_trees", run_id="compare_trees")
    board = choose_board(reach, NO_CONDITIONS, claim, cache_dir=cache, tell=lambda _: None)
    board.open()
    weights = resolve("smollm2-135m-q8_0", cache_dir=cache / "models")
    gguf_path = materialize(weights, cache_dir=cache / "models")
    workload, n_threads = llama_workload(weights, find_scenario("siso")), default_threads()
    plan = llama_plan(
        workload, find_engine(), gguf_path=gguf_path, cache_dir=cache, n_threads=n_threads, n_repetitions=3
    )
    plan = replace(plan, recorder="callback", binds_threads=True)
    for _ in sys.stdin:
        began_s, phases = time.monotonic(), dict[str, list[int]]()
        payload = board.run(plan)
        took_s = time.monotonic() - began_s
        for span in EngineRecord.from_plain(payload["engine"]).spans:
            phases.setdefault(span.phase.value, []).append(span.duration_ns)
        faster = {name: sorted(spans)[: max(1, len(spans) // 2)] for name, spans in phases.items()}
        means_ns = {name: round(sum(spans) / len(spans)) for name, spans in faster.items()}
        print(json.dumps({**means_ns, "the whole run": round(took_s * 1e9)}), flush=True)
    board.close()


def compare(trees: Sequence[Path], n_pairs: int) -> None:
    """Take the pairs, and print what they say."""
    processes = [
        subprocess.Popen(
            [tree.absolute() / ".venv/bin/python", Path(__file__).absolute(), "--measure"],
            cwd=tree,
            env={**os.environ, "PERFSUITE_LOCK_DIR": tempfile.mkdtemp()},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for tree in trees
    ]
    samples: list[list[dict[str, int]]] = [[], []]
    for _ in range(n_pairs + 1):  # the first of each loads files
        for side in random.sample((0, 1), 2):
            asked, answer = processes[side].stdin, processes[side].stdout
            assert asked is not None
            assert answer is not None
            asked.write("\n")
            asked.flush()
            samples[side].append(json.loads(answer.readline()))
    for process in processes:
        process.communicate(timeout=60)
    for name in samples[0][0]:
        old_ns, new_ns = ([sample[name] for sample in side[1:]] for side in samples)
        change = compare_pairs(old_ns, new_ns, alpha=_ALPHA)
        print(f"{name:16} {change.estimate_ratio:.4f} ({change.lower_ratio:.4f} to {change.upper_ratio:.4f})")


if __name__ == "__main__":
    if sys.argv[1:] == ["--measure"]:
        measure()
    else:
        compare([Path(each) for each in sys.argv[1:3]], int((*sys.argv[3:], 40)[0]))

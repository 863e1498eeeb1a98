"""Following a process that knows nothing of it, on a machine that other work loads."""

from __future__ import annotations

import itertools
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from statistics import median

import pytest

from perfsuite.errors import EngineError
from perfsuite.experiments.tracing.command_program import followed
from perfsuite.measure.ebpf_helper import find_helper
from perfsuite.measure.engine import Engine, find_engine, library_build_id
from perfsuite.measure.plan import EbpfPlan
from perfsuite.measure.tensor_layout import mapped_layout_library
from perfsuite.records.bpf_log_file import BpfKind, LevelsReason, read_bpf_log
from perfsuite.records.engine_trace import EventKind
from perfsuite.records.trace_levels import TraceLevel, parse_levels
from perfsuite.trace.recording import LOG_NAME, finish_recording, new_folder
from perfsuite.trace.timeline.preemption import held_up_operators, preemptions
from perfsuite.workload.weights import materialize, resolve
from tests.measure.traced_llama import TracedLlama, build_traced_llama

#: Longest to wait for a switch of levels, s.
_SWITCH_LIMIT_S = 60.0
_SPIN = "import os, sys, time; os.sched_setaffinity(0, {int(sys.argv[1])})\nwhile time.process_time() < 60: pass"

Follow = Callable[..., AbstractContextManager[object]]

pytestmark = pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="takes two processors")


@pytest.fixture(scope="module")
def engine() -> Engine:
    return find_engine()


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.getbasetemp() / "engine-cache"


@pytest.fixture
def target(engine: Engine, requires_ebpf: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TracedLlama]:
    folder = tmp_path_factory.mktemp("followed")
    path = materialize(resolve("smollm2-135m-l2-q8_0", cache_dir=folder), cache_dir=folder)
    with TracedLlama(build_traced_llama(engine, folder), path) as running:
        yield running


@contextmanager
def _busy(cpus: set[int], n_each: int = 1) -> Iterator[None]:
    """Keep processors busy with other work, so many processes bound to each."""
    others = [subprocess.Popen([sys.executable, "-c", _SPIN, str(cpu)]) for cpu in cpus for _ in range(n_each)]
    try:
        time.sleep(0.3)
        yield
    finally:
        for other in others:
            other.kill()
            other.wait(20)


@pytest.fixture
def follow(engine: Engine, cache: Path) -> Follow:
    """Follow a process into a folder with some levels, and with a floor of its speed where one is given."""

    def begin(pid: int, folder: Path, levels: str, floor: float | None = None) -> AbstractContextManager[object]:
        wanted = int(parse_levels(levels, "--trace"))
        ebpf = EbpfPlan(helper=str(find_helper(cache)), log_path="", levels=wanted, floor_tokens_per_s=floor)
        return followed(pid, ebpf, engine, folder, cache_dir=cache)

    return begin


@pytest.mark.long
def test_a_process_on_the_same_processor_shows_as_pre_emption(
    target: TracedLlama, follow: Follow, tmp_path: Path
) -> None:
    """While another program is bound to one processor, a thread waits for it there, and the operators are named."""
    pinned = max(os.sched_getaffinity(0))
    with follow(target.pid, tmp_path, "operator,ends,threads"), _busy({pinned}):
        target.decode(60)
    trace = finish_recording(tmp_path)
    others = [each for each in preemptions(trace) if each.cpu == pinned and each.instead is None]
    assert others, "no thread waited while another program had its processor"
    assert all(each.name and each.delay_ns > 0 for each in others)
    held_up = held_up_operators(others)
    assert {each.name for each in held_up} <= {node.tensor.name for graph in trace.graphs for node in graph}
    assert sum(each.delay_ns for each in held_up) > 0


def _checkout(engine: Engine, folder: Path) -> Path:
    """Make the checkout of a llama.cpp that looks as the installed one and is another build; return its ``bin``."""
    (headers,), bin_dir = engine.include_dirs, folder / "build" / "bin"
    shutil.copytree(headers, folder / "include", ignore=shutil.ignore_patterns("ggml*"))
    shutil.copytree(headers, folder / "ggml" / "include", ignore=shutil.ignore_patterns("llama*"))
    shutil.copytree(engine.library_dir, bin_dir, symlinks=True)
    library = (bin_dir / "libggml-base.so.0").resolve()
    build_id = bytes.fromhex(library_build_id(library))
    content = library.read_bytes()
    assert content.count(build_id) == 1
    library.write_bytes(content.replace(build_id, bytes(reversed(build_id))))
    return bin_dir


@pytest.mark.long
def test_the_headers_of_another_build_are_found_near_it(
    engine: Engine, follow: Follow, requires_ebpf: Path, tmp_path: Path
) -> None:
    """A program of your own checkout is followed by its headers; where they are gone, the option is named."""
    bin_dir = _checkout(engine, tmp_path / "llama.cpp")
    model = materialize(resolve("smollm2-135m-l2-q8_0", cache_dir=tmp_path), cache_dir=tmp_path)
    with TracedLlama(build_traced_llama(engine, bin_dir), model) as target:
        assert library_build_id(mapped_layout_library(target.pid)) != library_build_id(engine.library("libggml-base"))
        with follow(target.pid, new_folder(tmp_path / "found"), "operator"):
            target.decode(2)
        (graph,) = finish_recording(tmp_path / "found").graphs
        assert {"attn_norm-0", "ffn_up-1"} <= {node.tensor.name for node in graph}
        (tmp_path / "llama.cpp" / "include").rename(tmp_path / "moved")
        lost = pytest.raises(EngineError, match=r"no llama\.h and ggml\.h of this build, .*; or .* by --ggml-include$")
        with lost, follow(target.pid, new_folder(tmp_path / "lost"), "operator"):
            pytest.fail("followed without headers")


def _decode_until(target: TracedLlama, is_done: Callable[[], bool]) -> None:
    began_s = time.monotonic()
    while not is_done() and time.monotonic() - began_s < _SWITCH_LIMIT_S:
        target.decode(20)


def _reasons(log: Path) -> list[int]:
    """Return why levels were switched so far, as a log that is being written tells."""
    found = read_bpf_log(log)
    return [int(each) for each in found.records["flags"][found.positions(BpfKind.LEVELS)]]


@pytest.mark.measures
def test_a_floor_is_held_while_the_machine_is_loaded(target: TracedLlama, follow: Follow, tmp_path: Path) -> None:
    """Below the wanted speed probes go; when the load has gone they come back, and the trace says when."""
    processors = set(os.sched_getaffinity(0))
    rates = []
    with follow(target.pid, new_folder(tmp_path / "speeds"), "operator,ends"):
        for _ in range(5):
            began_s = time.monotonic()
            target.decode(40)
            rates.append(40 / (time.monotonic() - began_s))
    free = median(rates)
    floor = free / 3  # neighbours do not take that much, nine processes on a processor do
    folder = new_folder(tmp_path / "floor")
    log = folder / LOG_NAME
    with follow(target.pid, folder, "operator,ends", floor):
        target.decode(100)
        with _busy(processors, n_each=8):
            _decode_until(target, lambda: LevelsReason.BELOW_FLOOR in _reasons(log))
        _decode_until(target, lambda: LevelsReason.RECOVERED in _reasons(log))
    trace = finish_recording(folder)
    switches = [TraceLevel(int(each)) for each in trace.of(EventKind.LEVELS)["value"]]
    asked = parse_levels("operator,ends", "--trace")
    assert switches, f"no level was switched: {free:.0f} tokens/s alone, floor {floor:.0f}"
    assert switches[0] & asked != asked
    assert any(after & before != after for before, after in itertools.pairwise(switches)), "no level came back"
    assert all(levels & TraceLevel.TOKEN for levels in switches)

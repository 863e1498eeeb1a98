"""Keeping traces in files."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest

from perfsuite.errors import MeasurementError
from perfsuite.records.engine_trace import EXPERT_DTYPE, NOTHING, EngineTrace, EventKind, ProbeCost
from perfsuite.records.trace_file import HEAD, MAGIC, BlockKind, block_head, read_blocks, read_trace, write_trace
from perfsuite.testing.engine_traces import EPOCH_NS, engine_trace, event, small_trace
from perfsuite.testing.large_trace import large_trace

TWO = b"".join(
    (MAGIC, block_head(BlockKind.TABLES, b"one"), b"one", block_head(BlockKind.EVENTS, b"second"), b"second")
)


def read(content: bytes) -> list[tuple[BlockKind, bytes] | str]:
    """Return kind and payload of each block, and the words of a cut."""
    return [block if isinstance(block, str) else (block[0], bytes(block[1])) for block in read_blocks(content)]


def test_blocks_end_where_one_is_not_whole() -> None:
    """Magic alone has none; a cut, a wrong checksum and a length beyond the file end them at their place."""
    assert (read(TWO), read(MAGIC)) == ([(BlockKind.TABLES, b"one"), (BlockKind.EVENTS, b"second")], [])
    at = len(MAGIC) + HEAD.size + 3
    assert read(TWO[:-1])[1:] == [f"cut at byte {at}, in a block of 6 bytes; {HEAD.size + 5} bytes are left over"]
    assert read(TWO[: at + 5])[1:] == [f"cut at byte {at}, 5 bytes are left over"]
    damaged = TWO.replace(b"second", b"s3cond")
    assert str(read(damaged)[1]).startswith("damaged at byte 27: the checksum of 6 bytes does not hold")
    renamed = TWO.replace(BlockKind.EVENTS.value, BlockKind.EXPERTS.value)
    assert str(read(renamed)[1]).startswith("damaged at byte 27: the checksum")
    unknown = TWO.replace(BlockKind.EVENTS.value, b"WHAT")
    assert str(read(unknown)[1]).startswith("damaged at byte 27: a block of kind b'WHAT'")
    (cut,) = read_blocks(MAGIC + HEAD.pack(BlockKind.EVENTS.value, 0, 1 << 60))
    assert str(cut).startswith("cut at byte 8, in a block of 1152921504606846976 bytes")


def full_trace() -> EngineTrace:
    experts = np.zeros(4, EXPERT_DTYPE)
    experts["ns"], experts["expert"] = EPOCH_NS + np.arange(4) * 60_000, (5, 1, 2, 7)
    return small_trace(
        counter_names=("cycles", "page-faults"),
        counters=np.arange(8, dtype=np.int64).reshape(4, 2) - 1,
        experts=experts,
        n_experts=60,
        kernels=("mul_mat",),
        phases=("decode",),
        n_lost=3,
        probe_costs=(ProbeCost(name="barrier", n_runs=7, run_time_ns=1 << 40),),
        problems=("a problem", "und ein weiteres: größer"),
    )


def assert_same(one: EngineTrace, other: EngineTrace) -> None:
    for name in (each.name for each in fields(EngineTrace)):
        mine, theirs = getattr(one, name), getattr(other, name)
        if isinstance(mine, np.ndarray):
            assert mine.dtype == theirs.dtype, name
            assert mine.shape == theirs.shape, name
            assert mine.tobytes() == theirs.tobytes(), name
        else:
            assert mine == theirs, name


@pytest.mark.parametrize("trace", [full_trace(), engine_trace(), large_trace(200_000)])
def test_a_trace_is_read_as_it_was_written(tmp_path: Path, trace: EngineTrace) -> None:
    """Every field comes back, of a trace in one block, in several, and of an empty one."""
    path = tmp_path / "run.pstrace"
    write_trace(path, trace)
    assert_same(trace, read_trace(path))


def test_the_cut_of_a_recording_is_kept(tmp_path: Path) -> None:
    """A recording that broke off says so, and a file that is there stays unless it may go."""
    path = tmp_path / "run.pstrace"
    write_trace(path, small_trace(cut="the recorder was killed"))
    assert read_trace(path).cut == "the recorder was killed"
    path = tmp_path / "other.pstrace"
    write_trace(path, small_trace(1))
    with pytest.raises(MeasurementError, match="already exists; name another file"):
        write_trace(path, small_trace(2))
    assert read_trace(path).of(EventKind.TOKEN).size == 1
    write_trace(path, small_trace(2), overwrites=True)
    assert read_trace(path).of(EventKind.TOKEN).size == 2


def test_a_trace_is_read_up_to_any_cut(tmp_path: Path) -> None:
    """Wherever the file ends behind its header, it is read up to there and says so; before that it is refused."""
    whole = tmp_path / "whole.pstrace"
    write_trace(whole, full_trace())
    content, path = whole.read_bytes(), tmp_path / "cut.pstrace"
    sizes = set()
    for n_bytes in range(0, len(content), 7):
        path.write_bytes(content[:n_bytes])
        try:
            trace = read_trace(path)
        except MeasurementError:
            assert n_bytes < 1000
            continue
        assert trace.cut is not None
        assert trace.cut.startswith("cut.pstrace: ")
        assert trace.events["counters"].max(initial=NOTHING) < len(trace.counters)
        sizes.add(trace.events.size)
    assert sizes == {0, full_trace().events.size}


def rewritten(path: Path, *kinds: BlockKind, times: int = 1) -> None:
    """Keep the blocks of some kinds, those behind the header so many times."""
    blocks = [block for block in read(path.read_bytes()) if not isinstance(block, str) and block[0] in kinds]
    kept = [*blocks[:1], *(block for block in blocks[1:-1] for _ in range(times)), *blocks[-1:]]
    path.write_bytes(MAGIC + b"".join(block_head(*block) + block[1] for block in kept))


def test_what_lies_behind_the_cut_is_not_referred_to(tmp_path: Path) -> None:
    path = tmp_path / "run.pstrace"
    first = event(EventKind.GRAPH, 1, 2, value=0, thread=1, graph=5, counters=2)
    trace = engine_trace([first, event(EventKind.GRAPH, 3, 4, value=1)], threads=())
    write_trace(path, trace)
    rewritten(path, BlockKind.HEADER, BlockKind.TABLES, BlockKind.EVENTS)
    trace = read_trace(path)
    assert trace.events[["thread", "graph", "counters", "value"]].tolist() == [(-1, -1, -1, 0), (-1, -1, -1, -1)]
    assert trace.cut is not None
    assert trace.cut.endswith("without an end: its writer was killed, or still writes")


def test_a_trace_may_come_in_pieces(tmp_path: Path) -> None:
    """Tables, graphs and events may be in any number of blocks."""
    path, trace = tmp_path / "run.pstrace", small_trace(n_lost=9)
    write_trace(path, trace)
    rewritten(path, *BlockKind, times=2)
    found = read_trace(path)
    assert (found.threads, found.graphs) == (trace.threads * 2, trace.graphs * 2)
    assert (found.events.size, found.n_lost, found.cut) == (trace.events.size * 2, 9, None)

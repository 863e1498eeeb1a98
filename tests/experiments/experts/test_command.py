"""``perfsuite experts``: how experts are reused, told to people and machines."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from pathlib import Path

import pytest

from perfsuite.cli import main
from perfsuite.experiments.experts.command import expert_chart, expert_report
from perfsuite.records.chart import LineRole
from perfsuite.records.engine_trace import EngineTrace
from perfsuite.records.trace_file import write_trace
from perfsuite.testing.engine_traces import engine_trace, small_trace
from perfsuite.trace.recording import TRACE_NAME
from tests.command_streams import Refused, Streams
from tests.synthetic_statistics import expert_product, experts_of, step_events


def trace(n_steps: int, layers: Sequence[int]) -> EngineTrace:
    """Return the trace of layers of eight experts, of which the first was timed."""
    chance = random.Random(4)
    chosen = [(step, layer, [chance.sample(range(8), 2)]) for step in range(n_steps) for layer in layers]
    events = [each for step in range(n_steps) for each in step_events(step, lambda at, *_: 1_000 + at, 1)]
    return engine_trace(events, graphs=((expert_product(0),),), experts=experts_of(chosen), n_experts=8)


def _written(folder: Path, found: EngineTrace) -> Path:
    folder.mkdir()
    write_trace(folder / TRACE_NAME, found)
    return folder


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return _written(tmp_path / "run", trace(40, (0,)))


def test_a_recording_is_told(run: Path, tmp_path: Path, capsys: Streams) -> None:
    """The layers, the hits by size and the cache that was asked for; JSON has them too, and a picture is drawn."""
    assert main(["experts", str(run), "--cache", "4"]) == 0
    text = capsys.readouterr().out
    assert text.startswith("1 layer of 8 experts, 40 steps\na cache of 4 experts a layer hits ")
    assert "\nreuse distance and time: rank correlation " in text
    assert "experts cached" in text
    path = tmp_path / "experts.svg"
    assert main(["experts", str(run), "--json", "--plot", str(path)]) == 0
    plain = json.loads(capsys.readouterr().out)
    assert (len(plain["layers"]), len(plain["caches"]), plain["cache"]) == (1, 8, None)
    assert path.read_bytes().startswith(b"<svg")


def test_a_run_without_experts_is_one_line(tmp_path: Path, refused: Refused) -> None:
    dense = _written(tmp_path / "dense", small_trace())
    assert "holds no choices of experts; record them with" in refused(["experts", str(dense)])


def test_hits_are_drawn_over_the_size() -> None:
    caches, times = expert_chart(expert_report(trace(60, (0, 1)), name="run", n_cached=3)).panels
    assert [line.role for line in caches.lines] == [LineRole.SERIES, LineRole.REFERENCE]
    assert all(lru <= best for lru, best in zip(caches.lines[0].y, caches.lines[1].y, strict=True))
    assert times.lines[0].x == tuple(sorted(times.lines[0].x))

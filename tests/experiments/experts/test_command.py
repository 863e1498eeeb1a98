"""``perfsuite experts``."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from perfsuite.cli import main
from perfsuite.records.engine_trace import EngineTrace
from perfsuite.records.trace_file import write_trace
from perfsuite.testing.engine_traces import engine_trace, small_trace
from perfsuite.trace.recording import TRACE_NAME
from tests.command_streams import Refused, Streams
from tests.synthetic_statistics import expert_product, experts_of, step_events


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """Return the folder of a recording of one layer of eight experts."""
    chance = random.Random(6)
    chosen = [(step, 0, [chance.sample(range(8), 2)]) for step in range(40)]
    events = [each for step in range(40) for each in step_events(step, lambda *_: 1_000, 1)]
    return _written(
        tmp_path / "run", engine_trace(events, graphs=((expert_product(0),),), experts=experts_of(chosen), n_experts=8)
    )


def _written(folder: Path, trace: EngineTrace) -> Path:
    folder.mkdir()
    write_trace(folder / TRACE_NAME, trace)
    return folder


def test_a_recording_is_told(run: Path, tmp_path: Path, capsys: Streams) -> None:
    """The layers, the hits by size and the cache that was asked for; JSON has them too, and a picture is drawn."""
    assert main(["experts", str(run), "--cache", "4"]) == 0
    text = capsys.readouterr().out
    assert text.startswith("1 layer of 8 experts, 40 steps\na cache of 4 experts a layer hits ")
    assert "experts cached" in text
    path = tmp_path / "experts.svg"
    assert main(["experts", str(run), "--json", "--plot", str(path)]) == 0
    plain = json.loads(capsys.readouterr().out)
    assert (len(plain["layers"]), len(plain["caches"]), plain["cache"]) == (1, 8, None)
    assert path.read_bytes().startswith(b"<?xml")


@pytest.mark.parametrize(
    ("words", "told"), [(["--cache", "0"], "--cache=0: expected 1 or more"), (["--plot", "a.xyz"], "a.xyz")]
)
def test_a_mistake_is_one_line(words: list[str], told: str, run: Path, refused: Refused) -> None:
    assert told in refused(["experts", str(run), *words])


def test_a_recording_without_choices_says_how_to_get_them(tmp_path: Path, refused: Refused) -> None:
    dense = _written(tmp_path / "dense", small_trace())
    assert "holds no choices of experts; record them with" in refused(["experts", str(dense)])

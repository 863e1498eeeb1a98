"""llama.cpp beneath llama-cpp-python in a real worker: its tokens, its parts, and its operators."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

from perfsuite.measure.board.local_board import LocalBoard
from perfsuite.measure.engine import Engine, find_engine, other_declaration
from perfsuite.measure.engine_store import engine_folder, open_store
from perfsuite.measure.plan import BindingPlan, LlamaPlan, TurnsPlan, dump_plan
from perfsuite.records.binding import BindingRecord, Door, Part
from perfsuite.records.events import EngineRecord, Phase
from perfsuite.trace.samples import misaligned_evaluations, replicate_samples


@pytest.fixture(scope="module")
def payloads(engine: Engine, small_plan: LlamaPlan) -> tuple[dict[str, Any], dict[str, Any]]:
    assert engine.build_id == find_engine().build_id
    plans: Any = (TurnsPlan(llama=small_plan), BindingPlan(llama=small_plan))
    return LocalBoard(cache_dir=Path(small_plan.cache_dir)).run_in_turns(plans, n_turns=2, leader=0)


@pytest.fixture(scope="module")
def record(payloads: tuple[dict[str, Any], dict[str, Any]]) -> BindingRecord:
    return msgspec.convert(payloads[1]["binding"], BindingRecord)


def test_each_door_is_asked_once_a_turn(record: BindingRecord, small_plan: LlamaPlan) -> None:
    """One token comes out of the prompt, and then as many as are generated; who is first takes turns."""
    assert [each.door for each in record.requests] == [Door.CALLS, Door.COMPLETION, Door.COMPLETION, Door.CALLS]
    assert {len(each.token_ns) for each in record.requests} == {small_plan.n_gen + 1}
    assert record.load_ns > 0
    assert 0 < record.span_cost_ns < 1_000_000


def test_every_part_is_seen_within_its_request(record: BindingRecord) -> None:
    """A completion copies no logits; all else both do."""
    for request in record.requests:
        lacking = set(Part) - {each.part for each in request.spans} - {Part.PYTHON}
        assert lacking == (set() if request.door is Door.CALLS else {Part.LOGITS})
        assert all(request.start_ns <= each.start_ns <= each.end_ns for each in request.spans)
        assert list(request.token_ns) == sorted(request.token_ns)


def test_the_recorder_sees_the_operators_beneath_the_binding(payloads: tuple[dict[str, Any], dict[str, Any]]) -> None:
    """They are those beneath the driver, each evaluation whole, and the prompt has the same length."""
    native, binding = (EngineRecord.from_plain(payload["engine"]) for payload in payloads)
    assert misaligned_evaluations(binding) == binding.n_dropped == 0
    beneath, driven = replicate_samples(binding), replicate_samples(native)
    for phase in (Phase.PREFILL, Phase.DECODE):
        assert beneath.operator_ns[phase].keys() == driven.operator_ns[phase].keys()
        assert all(time_ns > 0 for time_ns in beneath.operator_ns[phase].values())
    lengths = [
        {node.tensor.ne[1] for graph in each.graphs for node in graph if node.tensor.name == "embd"}
        for each in (native, binding)
    ]
    assert max(lengths[0]) in lengths[1]


@pytest.mark.long
def test_a_stored_engine_runs_beneath_the_installed_binding(
    engine: Engine, small_plan: LlamaPlan, tmp_path: Path
) -> None:
    """Its libraries alone are in that process, and what is left of the record has the same shape on both sides."""
    store = open_store(tmp_path)
    entry = store.keep_engine(engine)
    kept = find_engine(engine_folder(store.folder / entry.engine_id))
    assert other_declaration(kept, engine) is None
    old = replace(small_plan, library_dir=str(kept.library_dir))
    plans: Any = tuple(BindingPlan(llama=each, has_sentinels=False) for each in (old, small_plan))
    sides = LocalBoard(cache_dir=Path(small_plan.cache_dir)).run_in_turns(plans, n_turns=1, leader=1)
    records = [msgspec.convert(each["binding"], BindingRecord) for each in sides]
    assert [len(each.requests) for each in records] == [2, 2]
    assert not any("sentinels" in each for each in sides)
    code = (
        "import sys\nfrom perfsuite.measure.binding import opened_binding\n"
        "from perfsuite.measure.plan import load_plan\nfrom pathlib import Path\n"
        "with opened_binding(load_plan(Path(sys.argv[1]).read_bytes()).llama): print(open('/proc/self/maps').read())"
    )
    (tmp_path / "plan").write_bytes(dump_plan(plans[0]))
    maps = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "plan")], capture_output=True, text=True, check=True
    ).stdout
    mapped = {line.split()[-1] for line in maps.splitlines() if "/libllama" in line or "/libggml" in line}
    assert {Path(each).parent for each in mapped} == {kept.library_dir}

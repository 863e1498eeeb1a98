"""``perfsuite trace view``: stored recordings as graphs, timelines and figures."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from perfsuite.cli import main
from perfsuite.experiments.engine_graph import recorded_cost, traced_cost
from perfsuite.records.engine_trace import EngineTrace, EventKind, TraceRecorder
from perfsuite.records.trace_file import write_trace
from perfsuite.testing.engine_traces import engine_trace, event, node, small_trace, tensor
from perfsuite.trace.operators import traced_operators
from perfsuite.trace.recording import TRACE_NAME
from tests.command_streams import Refused, Streams
from tests.synthetic_statistics import attention


def test_what_has_no_rule_has_no_cost() -> None:
    """An unknown operator or type, a missing source, and attention, of whose padded cache an unknown part is masked."""
    unknown = [
        node("SSM_SCAN", tensor("a"), tensor("b")),
        node("ADD", tensor("a"), tensor("b", type="q9_9"), tensor("c")),
        node("FLASH_ATTN_EXT", tensor("a"), tensor("b")),
        attention(256),
    ]
    operators = traced_operators(unknown)
    assert [traced_cost(operator) for operator in operators] == [None] * 4
    assert recorded_cost(operators[-1].node).flops > 0


def store(folder: str, trace: EngineTrace) -> None:
    Path(folder).mkdir()
    write_trace(Path(folder) / TRACE_NAME, trace)


@pytest.fixture
def run(tmp_path: Path) -> str:
    folder = str(tmp_path / "run")
    store(folder, small_trace(3))
    return folder


@pytest.fixture
def device(tmp_path: Path) -> str:
    folder, place = str(tmp_path / "device"), {"iteration": 0, "evaluation": 0, "graph": 0, "node": 1}
    kernel = event(EventKind.KERNEL, 0, 5_000, value=0, **place)
    store(folder, engine_trace([kernel], kernels=("gemv",), recorder=TraceRecorder.OPENCL))
    return folder


@pytest.mark.parametrize("view", ["graph", "timeline", "statistics"])
def test_each_view_is_json(run: str, view: str, capsys: Streams) -> None:
    assert main(["trace", "view", view, run, "--json"]) == 0
    assert isinstance(json.loads(capsys.readouterr().out), dict)


@pytest.mark.parametrize(
    ("view", "n_runs", "name", "begin"),
    [
        ("graph", 1, "graph.dot", b"digraph"),
        ("graph", 1, "graph.svg", b"<svg"),
        ("graph", 2, "both.svg", b"<svg"),
        ("timeline", 1, "timeline.pftrace", b"\n"),
    ],
)
def test_a_view_is_written_by_the_files_suffix(
    run: str, tmp_path: Path, view: str, n_runs: int, name: str, begin: bytes
) -> None:
    path = tmp_path / name
    assert main(["trace", "view", view, *[run] * n_runs, f"--output={path}"]) == 0
    assert path.read_bytes().startswith(begin)


def test_a_run_against_one_on_a_device_tells_who_is_faster(run: str, device: str, capsys: Streams) -> None:
    assert main(["trace", "view", "statistics", run, "--against", device, "--json"]) == 0
    (product,) = json.loads(capsys.readouterr().out)["operators"]
    assert (product["op"], product["dimensions"][0]["device_ns"]) == ("MUL_MAT", 5_000.0)


def test_what_cannot_be_compared_is_one_line(run: str, device: str, refused: Refused, tmp_path: Path) -> None:
    """The device's run is the one behind --against; an empty table would say nothing."""
    assert f"{device}: is of a device; expected the processor's run" in refused(
        ["trace", "view", "statistics", device, "--against", run]
    )
    assert f"--against={run}: is of the ebpf recorder; expected one of opencl" in refused(
        ["trace", "view", "statistics", run, "--against", run]
    )
    other = str(tmp_path / "tokens")
    store(other, engine_trace(graphs=()))
    assert f"shares no operator with {other}" in refused(["trace", "view", "statistics", other, "--against", device])

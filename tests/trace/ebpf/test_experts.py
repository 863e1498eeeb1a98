"""The experts that routers chose, out of the eBPF recorder's log."""

from __future__ import annotations

from pathlib import Path

import pytest

from perfsuite.records.bpf_log_file import read_bpf_log
from perfsuite.records.engine_trace import EngineTrace
from perfsuite.testing.bpf_logs import BpfLogBuilder, RawTensor, tensor_layout
from perfsuite.trace.ebpf.ebpf_trace import ebpf_trace

MATRICES = RawTensor(address=0x10, name="blk.7.ffn_gate_exps.weight", ne=(64, 32, 60, 1))
INPUT = RawTensor(address=0x20, name="ffn_norm-7")
#: What three tokens chose, and the same as rows of token, slot and expert.
BATCH = [[5, 9], [1, 0], [2, 3]]
BATCH_ROWS = [(0, 0, 5), (0, 1, 9), (1, 0, 1), (1, 1, 0), (2, 0, 2), (2, 1, 3)]
ALL_TOKENS, LAST_TOKEN = ((2, n, 1, 1) for n in (3, 1))


def ids_of(layer: int, ne: tuple[int, int, int, int] = ALL_TOKENS) -> RawTensor:
    return RawTensor(address=0x1000 + layer, name=f"ffn_moe_topk-{layer}", type="i32", ne=ne)


def log_of(ids: RawTensor, begin_ns: int, log: BpfLogBuilder, rows: list[list[int]], first_token: int = 0) -> None:
    product = RawTensor(
        address=ids.address + 0x5000, name="ffn_moe_gate", op="MUL_MAT_ID", sources=(MATRICES, INPUT, ids)
    )
    log.structure(begin_ns, product)
    log.experts(begin_ns + 1, ids, rows, first_token=first_token)
    log.operator(begin_ns + 2, begin_ns + 5, product)


def trace_of(tmp_path: Path, log: BpfLogBuilder) -> EngineTrace:
    log.end(1_000_000)
    return ebpf_trace(read_bpf_log(log.write(tmp_path / "log")), tensor_layout())


def chosen(trace: EngineTrace) -> list[tuple[int, int, int, int, int]]:
    return [tuple(row) for row in trace.experts[["iteration", "layer", "token", "slot", "expert"]].tolist()]


def test_rows_carry_layer_token_and_slot(tmp_path: Path) -> None:
    log = BpfLogBuilder()
    log.graph(1000, 9000)
    log_of(ids_of(7), 2000, log, BATCH)
    trace = trace_of(tmp_path, log)
    assert chosen(trace) == [(-1, 7, *row) for row in BATCH_ROWS]
    assert (trace.n_experts, trace.problems) == (60, ())


def test_records_of_one_batch_join(tmp_path: Path) -> None:
    """Ids that need more than one record continue where the first left off; what is reported twice counts once."""
    log = BpfLogBuilder()
    log.graph(1000, 9000)
    log_of(ids_of(7), 2000, log, [[5, 9], [1, 0]])
    log_of(ids_of(7), 3000, log, [[2, 3]], first_token=2)
    log_of(ids_of(7), 4000, log, [[5, 9], [1, 0]])
    assert [row[2:] for row in chosen(trace_of(tmp_path, log))] == BATCH_ROWS


@pytest.mark.parametrize("layer", [0, 9])
def test_a_layer_that_computes_outputs_alone_has_the_last_tokens(tmp_path: Path, layer: int) -> None:
    """The last layer routes only the token that makes an output, which is the last of the batch."""
    log = BpfLogBuilder()
    log.graph(1000, 9000)
    log_of(ids_of(7), 2000, log, BATCH)
    log_of(ids_of(layer, LAST_TOKEN), 3000, log, [[4, 6]])
    assert chosen(trace_of(tmp_path, log))[-2:] == [(-1, layer, 2, 0, 4), (-1, layer, 2, 1, 6)]


def test_tokens_count_over_the_graphs_of_one_iteration(tmp_path: Path) -> None:
    """The second graph's tokens follow the first one's; without names layers are numbered as they come."""
    log = BpfLogBuilder()
    log.add(1, 500, value=4)  # llama_decode begins
    log.graph(1000, 4000)
    log_of(ids_of(7), 2000, log, BATCH)
    log.graph(5000, 9000)
    log_of(ids_of(7, LAST_TOKEN), 6000, log, [[7, 8]])
    log.add(2, 10_000)
    assert [row[:3] for row in chosen(trace_of(tmp_path, log))][-1] == (0, 7, 3)
    log = BpfLogBuilder()
    log.graph(1000, 9000)
    log.experts(2000, ids_of(3), BATCH)
    log.experts(3000, ids_of(8), BATCH)
    trace = trace_of(tmp_path, log)
    assert trace.experts["layer"].tolist() == [0] * 6 + [1] * 6
    assert "layers of experts are numbered in the order of their ids: structure was not recorded" in trace.problems

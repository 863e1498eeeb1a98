"""Where the operators of a call run."""

from __future__ import annotations

from perfsuite.records.events import Phase
from perfsuite.trace.placement import BackendShare, in_runs, placement
from tests.synthetic_splits import CARD, DEVICE, GATHER, PROCESSOR, layer, node, split_record

PREFILL = (Phase.PREFILL, [(PROCESSOR, (node(*GATHER, rows=10), *layer(0, rows=10))), (CARD, layer(1, rows=10))])
DECODE = (Phase.DECODE, [(PROCESSOR, (node(*GATHER), *layer(0))), (CARD, (*layer(1), *layer(2)))])


def test_a_call_has_its_splits_in_order_and_its_operators_by_backend() -> None:
    """Views are no operators; the same backend several times in a row is one run."""
    found = placement(split_record([PREFILL, DECODE]), Phase.PREFILL)
    assert found is not None
    assert found.phase is Phase.PREFILL
    assert found.splits == (PROCESSOR, CARD)
    assert found.shares == (
        BackendShare(backend=PROCESSOR, n_splits=1, n_operators=3),
        BackendShare(backend=CARD, n_splits=1, n_operators=2),
    )
    assert (in_runs(("CPU", "OpenCL", "OpenCL", "CPU")), in_runs(())) == ("CPU, OpenCL x2, CPU", "")


def test_of_several_calls_the_last_one_counts() -> None:
    """What the first steps were given does not count, and a phase that was not run has none."""
    alone = (Phase.DECODE, [(PROCESSOR, layer(0))])
    found = placement(split_record([DECODE, alone, DECODE]), Phase.DECODE)
    assert found is not None
    assert [share.n_operators for share in found.shares] == [3, 4]
    last = placement(split_record([DECODE, alone]), Phase.DECODE)
    assert last is not None
    assert [share.backend for share in last.shares] == [PROCESSOR]
    assert placement(split_record([DECODE]), Phase.PREFILL) is None


def test_what_the_processor_computes_is_shown_by_role() -> None:
    """Layers are one role, whose shape is the first's; one that is refused for some shapes comes twice."""
    call = (Phase.DECODE, [(PROCESSOR, (node(*GATHER), *layer(0), *layer(1))), (CARD, layer(2))])
    found = placement(split_record([call]), Phase.DECODE)
    assert found is not None
    gather, norm, product = found.on_processor
    assert (gather.role, gather.op, gather.n_nodes, gather.refused_by) == ("embd", "GET_ROWS", 1, (DEVICE,))
    assert (norm.role, norm.op, norm.n_nodes, norm.refused_by) == ("norm", "RMS_NORM", 2, ())
    assert (product.role, product.source_type, product.ne) == ("ffn_out", "q8_0", (64, 1, 1, 1))
    nodes = (node("ffn_out-0", "MUL_MAT"), node("ffn_out-1", "MUL_MAT", (DEVICE,)), node("ffn_out-2", "MUL_MAT"))
    found = placement(split_record([(Phase.DECODE, [(PROCESSOR, nodes)])]), Phase.DECODE)
    assert found is not None
    assert [(each.n_nodes, each.refused_by) for each in found.on_processor] == [(2, ()), (1, (DEVICE,))]

"""Learning which kernels compute which operator."""

from __future__ import annotations

import pytest

from perfsuite.errors import MeasurementError
from perfsuite.records.events import Node, Phase, Tensor
from perfsuite.trace.opencl.kernel_mapping import group_ends, group_operators, learn_mapping
from tests.synthetic_engine_kernels import ALONE, FUSED, Step, recorded


def node(name: str, op: str, *, computed: bool = True, sources: tuple[str, ...] = ()) -> Node:
    return Node(tensor=_tensor(name), op=op, timed=computed, fused=False, sources=tuple(map(_tensor, sources)))


def _tensor(name: str) -> Tensor:
    return Tensor(name=name, type="f32", ne=(64, 1, 1, 1), nb=(4, 256, 256, 256))


GRAPH = (
    node("norm-3", "RMS_NORM", sources=("l_out-2",)),
    node("attn_norm-3", "MUL", sources=("norm-3", "blk.3.attn_norm.weight")),
    node("Qcur-3", "MUL_MAT", sources=("blk.3.attn_q.weight", "attn_norm-3")),
    node("Qcur-3 (reshaped)", "RESHAPE", computed=False, sources=("Qcur-3",)),
)


def test_a_group_of_nodes_is_one_operator() -> None:
    operators = group_operators(GRAPH, [(0, 1), (1, 2), (2, 3), (3, 4)])
    assert [each and (each.role, each.op) for each in operators] == [
        ("norm", "RMS_NORM"),
        ("attn_norm", "MUL"),
        ("Qcur", "MUL_MAT"),
        None,
    ]
    operators = group_operators(GRAPH, [(0, 2), (2, 4)])
    assert operators[0] is not None
    assert (operators[0].role, operators[0].op, operators[0].layer) == ("attn_norm", "RMS_NORM+MUL", 3)
    assert [source.name for source in operators[0].node.sources] == ["l_out-2", "blk.3.attn_norm.weight"]
    (operator,) = group_operators(GRAPH, [(0, 4)])
    assert operator is not None
    assert operator.op == "RMS_NORM+MUL+MUL_MAT"


STEPS = (Phase.PREFILL, Phase.DECODE, Phase.DECODE)
BY_NODE = recorded([Step(phase=phase, kernels=ALONE) for phase in STEPS])
FULL_SPEED = recorded([Step(phase=phase, kernels=FUSED) for phase in STEPS], is_grouped=False)
ENDS = (0, 1, 1, 1, 1)


def test_fused_nodes_make_a_group() -> None:
    """The node whose kernel vanishes at full speed ends no group; where none does nothing is joined."""
    assert group_ends(BY_NODE, FULL_SPEED) == (ENDS, ENDS)
    alone = recorded([Step(phase=phase, kernels=ALONE) for phase in STEPS], is_grouped=False)
    assert group_ends(BY_NODE, alone) == ((1,) * 5, (1,) * 5)


def test_each_kernel_gets_the_operator_of_its_group() -> None:
    by_group = recorded([Step(phase=phase, kernels=FUSED) for phase in STEPS], group_ends=(ENDS, ENDS))
    mapping = learn_mapping(by_group, FULL_SPEED)
    assert [each.phase for each in mapping.sequences] == [Phase.PREFILL, Phase.DECODE]
    kernels = ("rms_norm_mul", "quantize", "mul_mat", "add")
    assert mapping.roles_of(Phase.DECODE, kernels) == ("attn_norm", "Qcur", "Qcur", "l_out")
    assert mapping.kernel_roles(Phase.DECODE) == {
        "rms_norm_mul": ("attn_norm",),
        "quantize": ("Qcur",),
        "mul_mat": ("Qcur",),
        "add": ("l_out",),
    }
    assert mapping.roles_of(Phase.DECODE, ("rms_norm_mul", "mul_mat", "quantize", "add")) is None
    assert mapping.roles_of(Phase.LOAD, ("add",)) is None


def test_what_does_not_match_full_speed_is_refused() -> None:
    with pytest.raises(MeasurementError, match="prefill 0: kernel 0 is rms_norm group by group, rms_norm_mul at full"):
        learn_mapping(BY_NODE, FULL_SPEED)
    shorter = recorded([Step(phase=phase, kernels=FUSED) for phase in STEPS[:-1]], is_grouped=False)
    with pytest.raises(MeasurementError, match="decode: 2 evaluations recorded, 1 at full speed"):
        group_ends(BY_NODE, shorter)
    ends = (ENDS, ENDS)
    cut = recorded([Step(phase=phase, kernels=FUSED) for phase in STEPS])
    with pytest.raises(MeasurementError, match="5 groups recorded, expected 4"):
        learn_mapping(type(cut)(record=cut.record, trace=cut.trace, group_ends=ends), FULL_SPEED)

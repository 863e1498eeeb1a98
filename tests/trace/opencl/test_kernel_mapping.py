"""Learning which kernels compute which operator."""

from __future__ import annotations

import pytest

from perfsuite.errors import MeasurementError
from perfsuite.records.events import Phase
from perfsuite.trace.opencl.kernel_mapping import group_ends, learn_mapping
from tests.synthetic_engine_kernels import ALONE, FUSED, Step, recorded

STEPS = (Phase.PREFILL, Phase.DECODE, Phase.DECODE)
BY_NODE = recorded([Step(phase=phase, kernels=ALONE) for phase in STEPS])
FULL_SPEED = recorded([Step(phase=phase, kernels=FUSED) for phase in STEPS], is_grouped=False)
ENDS = (0, 1, 1, 1, 1)


def test_fused_nodes_make_a_group() -> None:
    """The node whose kernel vanishes at full speed ends no group, in each phase."""
    assert group_ends(BY_NODE, FULL_SPEED) == (ENDS, ENDS)


def test_without_fusion_every_node_is_a_group() -> None:
    """Where both runs launch the same kernels, nothing is joined."""
    alone = recorded([Step(phase=phase, kernels=ALONE) for phase in STEPS], is_grouped=False)
    assert group_ends(BY_NODE, alone) == ((1,) * 5, (1,) * 5)


def test_each_kernel_gets_the_operator_of_its_group() -> None:
    """The fused norm is called by its last node, and two kernels of a product are both the product."""
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


def test_an_unknown_sequence_has_no_roles() -> None:
    """A sequence of kernels that was never learnt is not guessed at."""
    by_group = recorded([Step(phase=phase, kernels=FUSED) for phase in STEPS], group_ends=(ENDS, ENDS))
    mapping = learn_mapping(by_group, FULL_SPEED)
    assert mapping.roles_of(Phase.DECODE, ("rms_norm_mul", "mul_mat", "quantize", "add")) is None
    assert mapping.roles_of(Phase.LOAD, ("add",)) is None


def test_other_kernels_group_by_group_are_refused() -> None:
    """A mapping whose groups do not give the sequence of full speed is an error that names the first difference."""
    with pytest.raises(MeasurementError, match="prefill 0: kernel 0 is rms_norm group by group, rms_norm_mul at full"):
        learn_mapping(BY_NODE, FULL_SPEED)


def test_other_evaluations_are_refused() -> None:
    """Runs of different lengths are not compared."""
    shorter = recorded([Step(phase=phase, kernels=FUSED) for phase in STEPS[:-1]], is_grouped=False)
    with pytest.raises(MeasurementError, match="decode: 2 evaluations recorded, 1 at full speed"):
        group_ends(BY_NODE, shorter)


def test_a_missing_group_is_refused() -> None:
    """A recorder that lost the end of a group cannot place kernels."""
    ends = (ENDS, ENDS)
    cut = recorded([Step(phase=phase, kernels=FUSED) for phase in STEPS])
    with pytest.raises(MeasurementError, match="5 groups recorded, expected 4"):
        learn_mapping(type(cut)(record=cut.record, trace=cut.trace, group_ends=ends), FULL_SPEED)

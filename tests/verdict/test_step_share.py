"""The change that passes as a share of the step that a case is part of."""

from __future__ import annotations

import pytest

from perfsuite.expectation.cases import Case
from perfsuite.records.events import Phase
from perfsuite.verdict.step_share import StepShare, step_margin_ratio, step_share

STEPS_NS = {Phase.PREFILL: 1e8, Phase.DECODE: 1e7}


def case(kind: str, phase: Phase | None) -> Case:
    """A case of a kind and a phase."""
    return Case(case_id="x", kind=kind, phase=phase, role=None)


@pytest.mark.parametrize(
    ("kind", "phase", "step"),
    [
        ("operator", Phase.DECODE, Phase.DECODE),
        ("operator", Phase.PREFILL, Phase.PREFILL),
        ("engine_kernel", Phase.DECODE, Phase.DECODE),
        ("phase", Phase.EMBEDDING, Phase.PREFILL),
        ("phase", Phase.SAMPLING, Phase.DECODE),
        ("phase", Phase.DECODE, None),
        ("phase", Phase.LOAD, None),
        ("kernel", None, None),
    ],
)
def test_a_case_has_a_share_of_its_step(kind: str, phase: Phase | None, step: Phase | None) -> None:
    """Operators and small phases are part of a prefill or of a decode step; what is a whole has no share."""
    found = step_share(case(kind, phase), steps_ns=STEPS_NS, share_ratio=0.002)
    assert found == (None if step is None else StepShare(step=step, step_ns=STEPS_NS[step], share_ratio=0.002))


def test_the_larger_of_margin_and_share_passes() -> None:
    """0.2 % of 10 ms are 20 us: of a case of 10 us 200 %, of one of 1 ms less than its margin of 5 %."""

    def passes(case_ns: float, share_ratio: float = 0.002) -> float:
        operator = case("operator", Phase.DECODE)
        return step_margin_ratio(operator, 0.05, case_ns=case_ns, steps_ns=STEPS_NS, share_ratio=share_ratio)

    assert passes(1e4) == pytest.approx(2.0)
    assert passes(1e6) == passes(1e4, 0.0) == passes(0.0) == 0.05


def test_where_a_step_was_not_measured_the_other_stands_in() -> None:
    """A run without a prompt has decode alone, and without either there is no share."""
    embedding = case("phase", Phase.EMBEDDING)
    found = step_share(embedding, steps_ns={Phase.DECODE: 1e7}, share_ratio=0.002)
    assert found is not None
    assert found.step is Phase.DECODE
    assert step_share(embedding, steps_ns={}, share_ratio=0.002) is None

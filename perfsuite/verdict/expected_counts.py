"""Judges counted work without a baseline: an operator that does more than its formula says is a finding by itself."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from perfsuite.expectation.counted_ratios import CountedRatios, RoleWork, known_ratios, role_works
from perfsuite.expectation.llama_workload import LlamaWorkload
from perfsuite.records.case_groups import COUNTED
from perfsuite.records.counts import CountedWork


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedCount:
    """One count of an operator, and what its formula lets expect."""

    case_id: str
    count: int
    expected: float
    #: What it may differ by.
    margin: float
    #: What its formula says, in `unit`: FLOPs, or bytes.
    formula: int
    unit: str

    @property
    def ratio(self) -> float:
        """What was counted, as a share of what is expected."""
        return self.count / self.expected

    @property
    def is_finding(self) -> bool:
        """Whether it does more than its formula lets expect; what does less costs nobody anything."""
        return self.count - self.expected > self.margin

    @property
    def told(self) -> str:
        """Such as ``2.54 instructions a FLOP, expected 1.46 ± 0.02``."""
        noun = self.case_id.rpartition("/")[2].replace("_", " ")
        found, expected, margin = (each / self.formula for each in (self.count, self.expected, self.margin))
        return f"{found:.3g} {noun} a {self.unit}, expected {expected:.3g} ± {margin:.1g}"


def expected_counts(
    counted: CountedWork, workload: LlamaWorkload, ratios: CountedRatios | None = None
) -> dict[str, ExpectedCount]:
    """Return what is expected of each count of an operator, by the id of its case; the ratios are the committed ones.

    Nothing is expected of another compiler or processor than the ratios hold for, of whole phases, and of operators
    that no ratio is known of.
    """
    known = ratios or known_ratios()
    if not known.holds_for(counted):
        return {}
    found = (each for work in role_works(workload) for each in _of_role(work, counted, known))
    return {each.case_id: each for each in found}


def _of_role(work: RoleWork, counted: CountedWork, ratios: CountedRatios) -> Iterator[ExpectedCount]:
    cost, counts = work.cost, counted.counts
    formulas = {
        "instructions": (cost.flops, "FLOP") if cost.flops else (cost.moved_bytes, "byte moved"),
        "bytes_read": (cost.read_bytes, "byte of the formula"),
        "bytes_written": (cost.written_bytes, "byte of the formula"),
    }
    for metric, (formula, unit) in formulas.items():
        name = f"{work.phase.value}/{work.role}/{metric}"
        expected = ratios.expected(work.terms, metric)
        if name in counts and expected is not None:
            yield ExpectedCount(
                case_id=f"{COUNTED}/{counted.prefix}/{name}",
                count=counts[name],
                expected=expected[0],
                margin=expected[1],
                formula=formula,
                unit=unit,
            )

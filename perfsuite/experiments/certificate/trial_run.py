"""Performs one trial of a certification on the device."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from perfsuite.experiments.certificate.certificate import INJECTED_PHASES, CaseAnswer, Trial, Truth
from perfsuite.experiments.certificate.peers import PEERS, PeerSamples
from perfsuite.experiments.compared_plans import ComparisonSetup, compare_plans
from perfsuite.experiments.pairs import Pair
from perfsuite.measure.board.protocol import Board
from perfsuite.measure.plan import LlamaPlan
from perfsuite.measure.schedule import Witness
from perfsuite.records.events import Phase
from perfsuite.records.outcome import Judgement
from perfsuite.verdict.pairs import LOOKS


def run_trial(plan: LlamaPlan, comparison: ComparisonSetup, truth: Truth, board: Board) -> Trial:
    """Compare the plan with itself, the new side slowed down as `truth` says, and keep what is answered."""
    slowed = replace(
        plan,
        inject_phases=INJECTED_PHASES if truth.phase_ratio else (),
        inject_phase_ratio=truth.phase_ratio,
        inject_op=truth.operator,
        inject_ratio=truth.operator_ratio,
    )
    load = _Load(board=board, n_processes=plan.n_threads if truth.is_loaded else 0)
    try:
        compared = compare_plans(comparison, (plan, slowed), board, load)
    finally:
        if load.has_begun:
            board.set_load(0)
    pairs, phases = compared.pairs, {phase: Phase(phase) for phase in INJECTED_PHASES}
    return Trial(
        truth=truth,
        answers={each.case_id: _answer(each) for each in compared.judgements},
        n_pairs=len(pairs),
        n_discarded=compared.n_discarded,
        duration_s=compared.duration_s,
        carrier=compared.carrier,
        peer_alarms=_peer_alarms(pairs),
        samples_ns={
            name: ([pair.old.phase_ns[phase] for pair in pairs], [pair.new.phase_ns[phase] for pair in pairs])
            for name, phase in phases.items()
        },
    )


def _answer(judgement: Judgement) -> CaseAnswer:
    return CaseAnswer(
        outcome=judgement.outcome,
        change_ratio=judgement.change_ratio,
        smallest_effect_ratio=judgement.smallest_effect_ratio,
    )


def _peer_alarms(pairs: Sequence[Pair]) -> dict[str, dict[str, bool]]:
    samples = {
        phase: PeerSamples(
            old=tuple(pair.old_repetitions_ns[Phase(phase)] for pair in pairs),
            new=tuple(pair.new_repetitions_ns[Phase(phase)] for pair in pairs),
        )
        for phase in INJECTED_PHASES
        if pairs
    }
    return {peer: {phase: alarms(each) for phase, each in samples.items()} for peer, alarms in PEERS.items()}


@dataclass
class _Load(Witness):
    """Busy loops on the board, one a thread of the engine, that begin half way to the first look."""

    board: Board
    n_processes: int
    has_begun: bool = False

    def before(self, n_valid: int) -> None:
        if n_valid >= LOOKS[0][0] // 2 and self.n_processes and not self.has_begun:
            self.has_begun = True
            self.board.set_load(self.n_processes)

"""Performs one trial of a certification on the device."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from perfsuite.experiments.certificate.certificate import INJECTED_PHASES, CaseAnswer, Trial, Truth
from perfsuite.experiments.certificate.peers import PEERS, PeerSamples
from perfsuite.experiments.pairs import ComparedPlans, ComparisonSetup, EnginePair, compare_plans
from perfsuite.measure.board.protocol import Board
from perfsuite.measure.plan import LlamaPlan
from perfsuite.measure.schedule import Witness
from perfsuite.records.events import Phase
from perfsuite.records.outcome import Judgement, Outcome
from perfsuite.verdict.pairs import LOOKS


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialSetup:
    """What all trials of a certification share."""

    plan: LlamaPlan
    comparison: ComparisonSetup


def run_trial(setup: TrialSetup, truth: Truth, board: Board) -> Trial:
    """Compare the plan with itself, the new side slowed down as `truth` says, and keep what is answered."""
    with _background_load(board, setup.plan.n_threads if truth.is_loaded else 0) as load:
        compared = compare_plans(setup.comparison, (setup.plan, _slowed(setup.plan, truth)), board, load)
    return trial_of(truth, compared)


def trial_of(truth: Truth, compared: ComparedPlans) -> Trial:
    """Keep of a comparison what is answered, and what other tools would."""
    return Trial(
        truth=truth,
        answers={each.case_id: _answer(each) for each in compared.judgements},
        n_pairs=len(compared.pairs),
        n_discarded=compared.n_discarded,
        duration_s=compared.duration_s,
        carrier=compared.carrier,
        peer_alarms=peer_alarms(compared.pairs),
        samples_ns={
            phase: (
                [pair.old.phase_ns[Phase(phase)] for pair in compared.pairs],
                [pair.new.phase_ns[Phase(phase)] for pair in compared.pairs],
            )
            for phase in INJECTED_PHASES
        },
    )


def peer_alarms(pairs: Sequence[EnginePair]) -> dict[str, dict[str, bool]]:
    """Return what the rules of other tools say of the same processes, by rule and phase."""
    samples = {
        phase: PeerSamples(
            old=tuple(pair.old_repetitions_ns[Phase(phase)] for pair in pairs),
            new=tuple(pair.new_repetitions_ns[Phase(phase)] for pair in pairs),
        )
        for phase in INJECTED_PHASES
        if pairs
    }
    return {peer.name: {phase: peer.alarms(each) for phase, each in samples.items()} for peer in PEERS}


def _slowed(plan: LlamaPlan, truth: Truth) -> LlamaPlan:
    return replace(
        plan,
        inject_phases=INJECTED_PHASES if truth.phase_ratio else (),
        inject_phase_ratio=truth.phase_ratio,
        inject_op=truth.operator,
        inject_ratio=truth.operator_ratio,
    )


def _answer(judgement: Judgement) -> CaseAnswer:
    return CaseAnswer(
        outcome=Outcome(judgement.outcome),
        change_ratio=judgement.change_ratio,
        smallest_effect_ratio=judgement.smallest_effect_ratio,
    )


@dataclass
class _Load(Witness):
    """Busy loops on the board, one a thread of the engine, that begin half way to the first look."""

    board: Board
    n_processes: int
    has_begun: bool = False

    def before(self, n_valid: int) -> None:
        """Begin the load when it is time."""
        if n_valid >= LOOKS[0][0] // 2 and self.n_processes and not self.has_begun:
            self.has_begun = True
            self.board.set_load(self.n_processes)


@contextmanager
def _background_load(board: Board, n_processes: int) -> Iterator[_Load]:
    load = _Load(board=board, n_processes=n_processes)
    try:
        yield load
    finally:
        if load.has_begun:
            board.set_load(0)

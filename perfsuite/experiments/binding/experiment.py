"""The cases of llama-cpp-python, measured once: beside the old engine in pairs, or by itself for stored times."""

from __future__ import annotations

import platform
import random
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import cycle
from statistics import median
from typing import Any

from perfsuite.errors import MeasurementError
from perfsuite.experiments.binding.overhead import (
    LEAST_PAIRS,
    OVERHEAD,
    WHOLES,
    BindingSide,
    NativePair,
    is_overhead,
    overhead_judgement,
    pair_of,
    run_pair,
    side_of,
)
from perfsuite.experiments.engine_runs import llama_fingerprint, lost_events, run_plan
from perfsuite.experiments.pairs import (
    lost_by_case,
    margins_by_step,
    other_outputs_of,
    pair_by,
    paired_judgements,
    pairs_by_case,
    too_few,
)
from perfsuite.experiments.progress import ProgressLine
from perfsuite.experiments.protocol import Experiment, Selection
from perfsuite.experiments.replicates import GroupWitness, Replicates, collect_replicates
from perfsuite.experiments.run_config import RunConfig
from perfsuite.experiments.samples import GroupSamples, case_samples
from perfsuite.measure.engine import other_declaration
from perfsuite.measure.llama_plan import kept_outputs, with_drawn_layout
from perfsuite.measure.plan import BindingPlan, LlamaPlan
from perfsuite.measure.schedule import Payload, Series, pair_complaint, waiting_complaint
from perfsuite.records.binding import ITL, TOKENS_PER_S, TTFT, Door, Part
from perfsuite.records.case import Case
from perfsuite.records.events import Phase
from perfsuite.records.outcome import Judgement
from perfsuite.trace.binding import PERCENTILES, percentile_ns
from perfsuite.units import format_ns
from perfsuite.verdict.drift import NATIVE_ITL, NATIVE_TOKENS_PER_S, NATIVE_TTFT, sentinel_of
from perfsuite.verdict.pairs import Suite, verdicts_at

#: The kind of the cases, the first part of their ids, and the name of their group; percentiles are of another kind.
BINDING, PERCENTILE = "binding", "percentile"

#: Pairs of processes, and turns and tokens of each: beside the native driver for stored times, where tails are judged
#: as well, and beside the old engine. A pair of the latter takes about 2 s of a small model.
N_PAIRS = 6
_N_TURNS, MOST_GEN = 4, 10
_FEW_TURNS, _FEW_GEN = 2, 4

#: Each so many seconds of a run's budget give a pair beside the old engine, if that is more than `N_PAIRS`.
_BUDGET_OF_PAIR_S = 15.0

#: What two sessions of a whole differ by, the native driver divided out (docs/results.md, 'Beneath llama-cpp-python').
_SESSION_SPREAD_RATIO = 0.03

#: The sentinels that the native driver is, by what it takes beside the binding.
_NATIVES = {NATIVE_TTFT: TTFT, NATIVE_ITL: ITL, NATIVE_TOKENS_PER_S: TOKENS_PER_S}

_PARTS = {Door.CALLS: tuple(Part), Door.COMPLETION: tuple(part for part in Part if part is not Part.LOGITS)}


def open_experiments(config: RunConfig, *_: object) -> tuple[Experiment, ...]:
    """Return the experiment where there can be one: on this machine, of the very libraries that the binding brings."""
    return (Binding(config=config),) if is_asked(config) else ()


def is_asked(config: RunConfig) -> bool:
    """Whether a run has cases of the binding: on this machine, of the very libraries that the binding brings."""
    scenario = config.workload.scenario
    has_tokens = scenario.n_prompt > 1 and scenario.n_gen > 0 and not scenario.n_depth and not config.prompt_lengths
    is_here = config.board.is_local and config.backend == "cpu" and not config.is_against and not config.is_planned
    return is_here and has_tokens and config.workload.is_alone and config.engine.is_packaged


def _subjects(door: Door) -> Iterator[tuple[str, Phase | None]]:
    yield from WHOLES.items()
    yield from ((TOKENS_PER_S, None), (OVERHEAD, None))
    for whole, phase in WHOLES.items():
        parts = (part for part in _PARTS[door] if whole == TTFT or part is not Part.TOKENIZE)
        yield from ((f"{whole}/{part.value}", phase) for part in parts)


@dataclass(kw_only=True)
class Binding(Experiment):
    """The cases of llama-cpp-python."""

    config: RunConfig
    kind: str = BINDING
    kinds: Collection[str] = (BINDING, PERCENTILE)
    has_reference: bool = True
    shares_budget: bool = True

    def cases(self) -> Iterator[Case]:
        """Enumerate the load, and by door the latencies, their parts, and what the binding adds to the native driver.

        Percentiles are judged where a margin is stated for them.
        """
        prefix = f"{BINDING}/{self.config.workload.prefix}"
        yield Case(case_id=f"{prefix}/load", kind=BINDING, role="load")
        for door in Door:
            for name, phase in _subjects(door):
                role = f"{door.value}/{name}"
                yield Case(case_id=f"{prefix}/{role}", kind=BINDING, phase=phase, role=role)
            for name in PERCENTILES if self.config.margins.mentions(PERCENTILE) else ():
                role = f"{door.value}/{name}"
                yield Case(case_id=f"{prefix}/{role}", kind=PERCENTILE, phase=Phase.DECODE, role=role)

    def n_steps(self, case_ids: Collection[str]) -> int:
        """Return the pairs of processes."""
        return N_PAIRS if self.config.old is None else _n_beside(self.config) + LEAST_PAIRS

    def session_spread_ratio(self, case_id: str, asked: float) -> float:
        """Return that of the wholes, which follow the native driver beside them; tails do as well, less steadily."""
        is_native = sentinel_of(case_id) in _NATIVES
        is_whole = is_native and case_id.startswith(f"{BINDING}/") and not case_id.endswith(("-p95", "-p99"))
        return min(asked, _SESSION_SPREAD_RATIO) if is_whole else asked

    def steps_ns(self, group: GroupSamples) -> Mapping[Phase, float]:
        """Return what a prompt and a token of a completion took, of which parts are shares."""
        prefix = f"{BINDING}/{self.config.workload.prefix}/{Door.COMPLETION.value}"
        found = {phase: group.samples.get(f"{prefix}/{whole}") for whole, phase in WHOLES.items()}
        return {phase: median(each.samples_ns) for phase, each in found.items() if each is not None and each.samples_ns}

    def measure(self, case_ids: Selection, progress: ProgressLine) -> GroupSamples:
        """Run pairs of both engines beneath the binding, else of the native driver and the binding for stored times.

        Those that had competition are repeated up to once each. What the binding adds to the native driver is judged at
        once in any case.

        Raises MeasurementError: a process of either side fails at once.
        """
        config, cases = self.config, tuple(self.cases())
        notes: tuple[str, ...] = ()
        if config.old is not None:
            try:
                selected = [each for each in cases if each.case_id in case_ids]
                return _measured_beside(config, config.old, selected, case_ids, progress)
            except MeasurementError as error:  # if it is the new engine that fails, it fails once more below
                notes = (f"the engine of the baseline does not run beneath this binding, so its times judge: {error}",)
        plan = _plan(config, MOST_GEN)
        replicates, pairs, problems = _beside_native(config, plan, progress, N_PAIRS, n_turns=_N_TURNS)
        shown = [pair_of(payload).binding for payload in replicates.shown_payloads]
        natives_ns = {name: tuple(round(each.native_ns[whole]) for each in pairs) for name, whole in _NATIVES.items()}
        group = replace(
            replicates.group,
            samples={
                case.case_id: case_samples(case, (each.samples_ns.get(case.role or "") for each in shown), problems)
                for case in cases
                if not is_overhead(case)
            },
            judgements=_overheads(cases, pairs, problems),
            sentinels_ns={**replicates.group.sentinels_ns, **natives_ns},
            notes=(*replicates.group.notes, *notes),
            outputs=kept_outputs(plan, [each.binding.engine for each in pairs]),
        )
        return _described(config, plan, group, cases, shown)


def _n_beside(config: RunConfig) -> int:
    return max(N_PAIRS, int(config.budget_s / _BUDGET_OF_PAIR_S))


def _measured_beside(
    config: RunConfig, old: RunConfig, cases: Sequence[Case], markers: Selection, progress: ProgressLine
) -> GroupSamples:
    """Compare both engines beneath the binding, and the new one with the native driver.

    Raises MeasurementError: a process fails, or the old engine was not made for the declarations that the binding has.
    """
    if other := other_declaration(old.engine, config.engine):
        raise MeasurementError(f"its llama.h declares {other} otherwise than this binding does")
    has_tails = any(case.kind == PERCENTILE for case in cases)
    n_turns, most_gen = (_N_TURNS, MOST_GEN) if has_tails else (_FEW_TURNS, _FEW_GEN)
    plans = _plan(old, most_gen), _plan(config, most_gen)
    witness = GroupWitness(config=config, group=BINDING, what="pairs beneath llama-cpp-python", progress=progress)
    series = Series(
        take=_turns(config, plans, n_turns),
        complain=pair_complaint,
        keep=lambda payloads: pair_by(payloads, side_of),
        witness=witness,
    )
    with series.broken_off(by_failure=False):
        series.extend(_n_beside(config))
    timed = [case for case in cases if not is_overhead(case)]
    pairs, margins, sides = series.valid, config.margins.of_cases(cases, markers), pairs_by_case(timed, series.valid)
    lost = lost_events(side.engine for pair in pairs for side in (pair.old, pair.new))
    differing, other_problems = other_outputs_of(config, pairs)
    problems = (*other_problems, *too_few(series), *filter(None, (lost,)), *config.board.held().problems)
    verdicts = verdicts_at(
        sides,
        margins_by_step(timed, margins, sides, pairs, config.step_share_ratio),
        Suite(),
        share_ratio=1.0,
        lost=lost_by_case(timed, pairs),
    )
    judgements = paired_judgements(
        timed, sides, verdicts, margins, lambda case: problems, step_share_ratio=config.step_share_ratio
    )
    group, overheads = witness.taken(series), _overheads(cases, (), ())
    if overheads and series.broken_off_by is None:
        replicates, natives, why = _beside_native(config, plans[1], progress, LEAST_PAIRS, n_turns=_FEW_TURNS)
        group = replace(group, broken_off_by=replicates.group.broken_off_by)
        overheads = _overheads(cases, natives, why)
    group = replace(group, judgements={**judgements, **overheads}, notes=(*differing, *group.notes))
    return _described(config, plans[1], group, cases, [pair.new for pair in pairs])


def _turns(config: RunConfig, plans: tuple[LlamaPlan, LlamaPlan], n_turns: int) -> Callable[[], Sequence[Payload]]:
    """Return what lets both engines take turns beneath the binding, with the same prompts and layouts drawn anew."""
    order, leaders = random.Random(), cycle(random.sample((0, 1), 2))

    def take() -> Sequence[Payload]:
        seed = order.randrange(2**31)
        drawn: Any = tuple(
            BindingPlan(llama=replace(with_drawn_layout(each, order), seed=seed), has_sentinels=False) for each in plans
        )
        return config.board.run_in_turns(drawn, n_turns=n_turns, leader=next(leaders))

    return take


def _plan(config: RunConfig, most_gen: int) -> LlamaPlan:
    plan = run_plan(config)
    return replace(plan, n_gen=min(plan.n_gen, most_gen))


def _beside_native(
    config: RunConfig, plan: LlamaPlan, progress: ProgressLine, n_pairs: int, *, n_turns: int
) -> tuple[Replicates, list[NativePair], tuple[str, ...]]:
    """Take pairs of the native driver and the binding; return also those that can be used, and why they cannot."""
    order, leaders = random.Random(), cycle((0, 1))
    replicates = collect_replicates(
        replace(config, n_replicates=min(config.n_replicates, n_pairs)),
        lambda: run_pair(config.board, with_drawn_layout(plan, order), next(leaders), n_turns=n_turns),
        waiting_complaint,
        "llama-cpp-python",
        progress,
        group=BINDING,
    )
    pairs = list(map(pair_of, replicates.payloads))
    lost = lost_events(each.binding.engine for each in pairs)
    return replicates, pairs, (*replicates.problems, *filter(None, (lost,)))


def _overheads(cases: Sequence[Case], pairs: Sequence[NativePair], problems: Sequence[str]) -> dict[str, Judgement]:
    return {case.case_id: overhead_judgement(case, pairs, problems) for case in cases if is_overhead(case)}


def _described(
    config: RunConfig,
    plan: LlamaPlan,
    group: GroupSamples,
    cases: Sequence[Case],
    sides: Sequence[BindingSide],
) -> GroupSamples:
    """Say what was measured, and what is shown of it and not judged."""
    version = sides[0].engine.engine_version if sides else "unknown"
    return replace(
        group,
        fingerprint={
            **llama_fingerprint(config, version),
            "python": platform.python_version(),
            "n_gen": str(plan.n_gen),  # which decides what a token of a request takes
        },
        unclaimed=_unclaimed(config, cases, sides),
        notes=(*group.notes, *_notes(sides)),
        description=f"llama-cpp-python {_version()}, Python {platform.python_version()}",
        engine_version=version,
    )


def _unclaimed(config: RunConfig, cases: Sequence[Case], sides: Sequence[BindingSide]) -> dict[str, str]:
    claimed = {case.role for case in (*cases, *Binding(config=config).cases())}
    claimed |= {f"{door.value}/{name}" for door in Door for name in PERCENTILES}
    found = dict.fromkeys(subject for each in sides for subject in each.samples_ns if subject not in claimed)
    prefix = f"{BINDING}/{config.workload.prefix}"
    return {f"{prefix}/{subject}": "recorded, and no case claims it: no such part is expected" for subject in found}


def _notes(sides: Sequence[BindingSide]) -> Iterator[str]:
    if not sides:
        return
    yield f"each span of the binding's parts costs {max(each.span_cost_ns for each in sides)} ns"
    for door in Door:
        gaps_ns = [gap_ns for each in sides for gap_ns in each.gaps_ns[door]]
        if gaps_ns:
            tails = (f"{part:.0%} within {format_ns(percentile_ns(gaps_ns, part))}" for part in PERCENTILES.values())
            yield f"{door.value}: of {len(gaps_ns)} gaps between tokens {' and '.join(tails)}"


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version  # looks through the installed distributions

    try:
        return version("llama-cpp-python")
    except PackageNotFoundError:
        return "of a source tree"

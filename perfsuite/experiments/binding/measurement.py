"""Measures llama-cpp-python beside the native driver, in pairs, once for all cases of the binding."""

from __future__ import annotations

import platform
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import cycle
from statistics import median
from typing import Any

import msgspec

from perfsuite.expectation.cases import Case
from perfsuite.experiments.engine_pairs import PairedGroup
from perfsuite.experiments.engine_replicates import llama_fingerprint, lost_events, run_plan
from perfsuite.experiments.progress import ProgressLine
from perfsuite.experiments.replicates import GroupSamples, case_samples, collect_replicates
from perfsuite.experiments.run_config import RunConfig
from perfsuite.measure.board.protocol import Board
from perfsuite.measure.contention import Contention
from perfsuite.measure.llama_plan import with_drawn_layout
from perfsuite.measure.plan import BindingPlan, LlamaPlan, TurnsPlan
from perfsuite.measure.schedule import Payload, waiting_complaint
from perfsuite.records.binding import ITL, TOKENS_PER_S, TTFT, BindingRecord, Door, Part
from perfsuite.records.events import EngineRecord, Phase
from perfsuite.records.outcome import Judgement, Outcome, told_judgement
from perfsuite.trace.binding import binding_samples
from perfsuite.trace.samples import faster_half_mean
from perfsuite.verdict.drift import NATIVE_ITL, NATIVE_TOKENS_PER_S, NATIVE_TTFT, sentinel_of
from perfsuite.verdict.paired import PairedRatio, paired_ratio

#: The kind of the cases, the first part of their ids, and the name of their group.
BINDING = "binding"

#: Pairs of processes, turns of each, and tokens of a turn at most: what a run of a small model has 20 s for.
N_PAIRS = 5
_N_TURNS = 4
MOST_GEN = 10

#: What two sessions of a whole differ by, the native driver divided out (docs/results.md, 'Beneath llama-cpp-python').
SESSION_SPREAD_RATIO = 0.03

#: What the binding may take beyond the native driver and what its own spans explain.
UNEXPLAINED_RATIO = 0.02

_OVERHEAD = "overhead"
_WHOLES = {TTFT: Phase.PREFILL, ITL: Phase.DECODE, "itl-p95": Phase.DECODE, "itl-p99": Phase.DECODE}
_PARTS = {Door.CALLS: tuple(Part), Door.COMPLETION: tuple(part for part in Part if part is not Part.LOGITS)}


def is_asked(config: RunConfig) -> bool:
    """Whether a run has cases of the binding: on this machine, of the very libraries that the binding brings."""
    scenario = config.workload.scenario
    has_tokens = scenario.n_prompt > 1 and scenario.n_gen > 0 and not scenario.n_depth and not config.prompt_lengths
    is_here = config.board.is_local and config.backend == "cpu" and not config.is_against and not config.is_planned
    return is_here and has_tokens and config.workload.is_alone and config.engine.is_packaged


def binding_cases(config: RunConfig) -> Iterator[Case]:
    """Enumerate the load, and by door the latencies, their parts, and what the binding adds to the native driver."""
    prefix = f"{BINDING}/{config.workload.prefix}"
    yield Case(case_id=f"{prefix}/load", kind=BINDING, role="load")
    for door in Door:
        for name, phase in _subjects(door):
            role = f"{door.value}/{name}"
            yield Case(case_id=f"{prefix}/{role}", kind=BINDING, phase=phase, role=role)


def _subjects(door: Door) -> Iterator[tuple[str, Phase | None]]:
    yield from _WHOLES.items()
    yield TOKENS_PER_S, None
    for whole in (TTFT, ITL):
        parts = (part for part in _PARTS[door] if whole == TTFT or part is not Part.TOKENIZE)
        yield from ((f"{whole}/{part.value}", _WHOLES[whole]) for part in parts)
        yield f"{_OVERHEAD}/{whole}", None


@dataclass(frozen=True, slots=True, kw_only=True)
class BindingPair:
    """What the binding and the native driver took side by side."""

    #: By subject, ns.
    binding_ns: Mapping[str, int]
    #: The native driver's time to the first token, of each further one, and of a request by its tokens, ns.
    native_ns: Mapping[str, float]
    #: What a greedy choice takes there, which the binding's sampling takes the place of.
    native_sampling_ns: float
    span_cost_ns: int
    engine: EngineRecord


def measure_binding(config: RunConfig, cases: Sequence[Case], progress: ProgressLine) -> PairedGroup:
    """Run pairs of the native driver and the binding; those that had competition are repeated up to once each.

    What is judged at once is the overhead; all else has a baseline.

    Raises MeasurementError: a process of either side fails at once.
    """
    plan = run_plan(config)
    plan = replace(plan, n_gen=min(plan.n_gen, MOST_GEN))
    order, leaders = random.Random(), cycle((0, 1))
    some = replace(config, n_replicates=min(config.n_replicates, N_PAIRS))
    replicates = collect_replicates(
        some,
        lambda: run_pair(config.board, with_drawn_layout(plan, order), next(leaders)),
        waiting_complaint,
        "llama-cpp-python",
        progress,
        group=BINDING,
    )
    shown = [pair_of(payload) for payload in replicates.shown_payloads]
    pairs = shown[: len(replicates.payloads)]
    problems = (*replicates.problems, *filter(None, (lost_events(each.engine for each in pairs),)))
    timed = [case for case in cases if not _is_overhead(case)]
    samples = {
        case.case_id: case_samples(case, (each.binding_ns.get(case.role or "") for each in shown), problems)
        for case in timed
    }
    version = shown[0].engine.engine_version if shown else "unknown"
    group = replace(
        replicates.group,
        samples=samples,
        sentinels_ns={**replicates.group.sentinels_ns, **_natives_ns(pairs)},
        fingerprint={
            **llama_fingerprint(config, version),
            "python": platform.python_version(),
            "n_gen": str(plan.n_gen),  # which decides what a token of a request takes
        },
        unclaimed=_unclaimed(config, cases, pairs),
        notes=(*replicates.group.notes, *_notes(pairs)),
        description=f"llama-cpp-python {_version()}, Python {platform.python_version()}",
        engine_version=version,
    )
    judgements = {case.case_id: overhead_judgement(case, pairs, problems) for case in cases if _is_overhead(case)}
    return PairedGroup(group=group, judgements=judgements)


def run_pair(board: Board, plan: LlamaPlan, leader: int) -> Payload:
    """Let the native driver and the binding take turns; the payload is the binding's, with the native record in it."""
    plans: Any = (TurnsPlan(llama=plan), BindingPlan(llama=plan))
    native, binding = board.run_in_turns(plans, n_turns=_N_TURNS, leader=leader)
    both = [Contention.from_plain(each["contention"]) for each in (native, binding)]
    return {**binding, "native": native["engine"], "contention": Contention.total(both).to_plain()}


def pair_of(payload: Payload) -> BindingPair:
    """Reduce what `run_pair` returned."""
    record = msgspec.convert(payload["binding"], BindingRecord)
    native = EngineRecord.from_plain(payload.get("native"))
    by_phase = {
        phase: [span.duration_ns for span in native.spans if span.phase is phase]
        for phase in (Phase.PREFILL, Phase.DECODE, Phase.SAMPLING)
    }
    sampling_ns = median(by_phase[Phase.SAMPLING])
    ttft_ns = faster_half_mean(by_phase[Phase.PREFILL]) + sampling_ns
    itl_ns = median(by_phase[Phase.DECODE]) + sampling_ns
    n_gen = len(by_phase[Phase.DECODE]) // len(by_phase[Phase.PREFILL])
    return BindingPair(
        binding_ns=binding_samples(record),
        native_ns={TTFT: ttft_ns, ITL: itl_ns, TOKENS_PER_S: (ttft_ns + n_gen * itl_ns) / (n_gen + 1)},
        native_sampling_ns=sampling_ns,
        span_cost_ns=record.span_cost_ns,
        engine=EngineRecord.from_plain(payload.get("engine")),
    )


def _natives_ns(pairs: Sequence[BindingPair]) -> dict[str, tuple[int, ...]]:
    names = {NATIVE_TTFT: TTFT, NATIVE_ITL: ITL, NATIVE_TOKENS_PER_S: TOKENS_PER_S}
    return {name: tuple(round(each.native_ns[whole]) for each in pairs) for name, whole in names.items()}


def steps_ns(config: RunConfig, group: GroupSamples) -> dict[Phase, float]:
    """Return what a prompt and a token of a completion took, of which parts are shares."""
    found = {
        phase: group.samples.get(f"{BINDING}/{config.workload.prefix}/{Door.COMPLETION.value}/{whole}")
        for whole, phase in ((TTFT, Phase.PREFILL), (ITL, Phase.DECODE))
    }
    return {phase: median(each.samples_ns) for phase, each in found.items() if each is not None and each.samples_ns}


def is_beside_native(case_id: str) -> bool:
    """Whether a case follows the native driver beside it as a whole; tails do as well, and are not as steady."""
    is_native = sentinel_of(case_id) in (NATIVE_TTFT, NATIVE_ITL, NATIVE_TOKENS_PER_S)
    return is_native and not case_id.endswith(("-p95", "-p99"))


def _is_overhead(case: Case) -> bool:
    return f"/{_OVERHEAD}/" in case.case_id


def overhead_of(pairs: Sequence[BindingPair], door: Door, whole: str) -> PairedRatio:
    """Return the binding's time over the native driver's, over pairs; ValueError where they are too few."""
    old_ns = [round(each.native_ns[whole]) for each in pairs]
    return paired_ratio(old_ns, [each.binding_ns[f"{door.value}/{whole}"] for each in pairs])


def explained_ratio(pairs: Sequence[BindingPair], door: Door, whole: str) -> float:
    """Return what the spans say that the binding takes, over the native driver: all parts but the engine's own."""
    own = [part for part in Part if part is not Part.DECODE]
    return median(
        1.0
        + (sum(each.binding_ns.get(f"{door.value}/{whole}/{part.value}", 0) for part in own) - each.native_sampling_ns)
        / each.native_ns[whole]
        for each in pairs
    )


def overhead_judgement(case: Case, pairs: Sequence[BindingPair], problems: Sequence[str]) -> Judgement:
    """Judge what the binding adds: PASS where its spans explain it, SLOW where the engine itself is slower beneath it.

    Which the bounds of the ratio say (95 %, one-sided); INCONCLUSIVE between the two.
    """
    door_name, _, whole = (case.role or "").split("/")
    door = Door(door_name)
    if problems or len(pairs) < N_PAIRS:
        why = problems[0] if problems else f"{len(pairs)} pairs, and {N_PAIRS} are needed"
        return told_judgement(case.case_id, BINDING, Outcome.INVALID, why)
    if any(f"{door.value}/{whole}" not in each.binding_ns for each in pairs):
        return told_judgement(case.case_id, BINDING, Outcome.INVALID, "the model ended its text after one token")
    ratio, explained = overhead_of(pairs, door, whole), explained_ratio(pairs, door, whole)
    limit = explained + UNEXPLAINED_RATIO
    outcome = Outcome.SLOW if ratio.lower_ratio > limit else Outcome.INCONCLUSIVE
    outcome = Outcome.PASS if ratio.upper_ratio <= limit else outcome
    measured, lower, upper, told = (
        f"{(each - 1.0) * 100.0:+.1f} %"
        for each in (ratio.median_ratio, ratio.lower_ratio, ratio.upper_ratio, explained)
    )
    text = (
        f"{measured} over the native driver (95 % bounds {lower} to {upper}, {ratio.n_pairs} pairs); "
        f"its spans explain {told}, and {UNEXPLAINED_RATIO * 100.0:g} % more passes"
    )
    return told_judgement(case.case_id, BINDING, outcome, text, ratio.median_ratio)


def _unclaimed(config: RunConfig, cases: Sequence[Case], pairs: Sequence[BindingPair]) -> dict[str, str]:
    claimed = {case.role for case in cases} | {case.role for case in binding_cases(config)}
    found = dict.fromkeys(subject for each in pairs for subject in each.binding_ns if subject not in claimed)
    prefix = f"{BINDING}/{config.workload.prefix}"
    return {f"{prefix}/{subject}": "recorded, and no case claims it: no such part is expected" for subject in found}


def _notes(pairs: Sequence[BindingPair]) -> Iterator[str]:
    if pairs:
        yield f"each span of the binding's parts costs {max(each.span_cost_ns for each in pairs)} ns"


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version  # looks through the installed distributions

    try:
        return version("llama-cpp-python")
    except PackageNotFoundError:
        return "of a source tree"

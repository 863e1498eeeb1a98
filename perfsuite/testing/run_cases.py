"""The cases of a made-up run: their ids, kinds and times, the same in every run."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import Any

from perfsuite.records.outcome import Judgement, Outcome, told_judgement
from perfsuite.units import format_change, format_ns

#: What the made-up runs measured.
ARCHITECTURE, SCENARIO = "smollm2-135m-q8_0", "siso"
WORKLOAD = f"{ARCHITECTURE}/{SCENARIO}"


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedRole:
    """An operator of the made-up graph: the time of all layers together in one occurrence of each phase."""

    role: str
    op: str
    prefill_ns: int
    decode_ns: int
    #: Whether it is in every layer; else it is once at the end.
    is_layered: bool = True


#: In the order in which they run.
ROLES = tuple(
    PlannedRole(role=role, op=op, prefill_ns=prefill_us * 1000, decode_ns=decode_us * 1000, is_layered=is_layered)
    for role, op, prefill_us, decode_us, is_layered in (
        ("attn_norm", "RMS_NORM+MUL", 360, 22, True),
        ("Qcur", "MUL_MAT", 5450, 350, True),
        ("Qcur_rope", "ROPE", 255, 23, True),
        ("Vcur", "MUL_MAT", 1920, 115, True),
        ("Kcur", "MUL_MAT", 1900, 98, True),
        ("Kcur_rope", "ROPE", 178, 30, True),
        ("cache_k", "SET_ROWS", 46, 12, True),
        ("cache_v", "SET_ROWS", 39, 20, True),
        ("flash_attn_ext", "FLASH_ATTN_EXT", 4720, 266, True),
        ("attn_out", "MUL_MAT", 5460, 360, True),
        ("ffn_inp", "ADD", 101, 14, True),
        ("ffn_norm", "RMS_NORM+MUL", 350, 20, True),
        ("ffn_gate", "MUL_MAT", 13940, 853, True),
        ("ffn_up", "MUL_MAT", 14070, 881, True),
        ("ffn_swiglu", "GLU", 526, 49, True),
        ("ffn_out", "MUL_MAT", 12550, 673, True),
        ("l_out", "ADD", 119, 29, True),
        ("attn_out_rows", "GET_ROWS", 2, 1, False),
        ("residual_rows", "GET_ROWS", 1, 1, False),
        ("result_norm", "RMS_NORM+MUL", 1, 1, False),
        ("result_output", "MUL_MAT", 922, 923, False),
    )
)

#: Time of each phase, ns; prefill and decode are their operators and what is left.
PHASES_NS = {
    "embedding": 9_000,
    "prefill": sum(each.prefill_ns for each in ROLES) + 428_000,
    "decode": sum(each.decode_ns for each in ROLES) + 84_000,
    "copy": 4_800,
    "softmax": 196_000,
    "sampling": 39_000,
    "end_to_end": 198_000_000,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedCase:
    """One case before it is measured."""

    case_id: str
    kind: str
    #: What it takes when nothing changed; None for a case without times.
    base_ns: int | None

    @property
    def has_pairs(self) -> bool:
        """Whether a comparison in pairs covers it: what the engine does, and nothing else."""
        return self.kind in ("phase", "operator", "engine_kernel")


def phase_id(phase: str) -> str:
    """Return the id of a phase's case."""
    return f"phase/{WORKLOAD}/{phase}"


def operator_id(phase: str, role: str) -> str:
    """Return the id of an operator's case."""
    return f"operator/{WORKLOAD}/{phase}/{role}"


def planned_cases(n_cases: int, names: Sequence[str]) -> tuple[PlannedCase, ...]:
    """Return the first cases of a list that never ends: phases, cases with the given names, operators, all others."""
    endless = (
        PlannedCase(case_id=case_id, kind=kind, base_ns=base_ns) for case_id, kind, base_ns in _endless_cases(names)
    )
    return tuple(itertools.islice(endless, n_cases))


def _endless_cases(names: Sequence[str]) -> Iterator[tuple[str, str, int | None]]:
    for phase in ("prefill", "decode", "end_to_end", "embedding", "copy", "softmax", "sampling"):
        yield phase_id(phase), "phase", PHASES_NS[phase]
    # of a third party's tests; the first two names are kinds too
    yield from ((f"tokenizer/{name}", "tokenizer", 40_000) for name in names)
    yield from ((f"{name}/encode", name.partition("/")[0], 40_000) for name in names[:2])
    for phase in ("prefill", "decode"):
        times = {each.role: each.prefill_ns if phase == "prefill" else each.decode_ns for each in ROLES}
        times["rest"] = PHASES_NS[phase] - sum(times.values())
        yield from ((operator_id(phase, role), "operator", time_ns) for role, time_ns in times.items())
    for number in itertools.count():  # all other kinds in turn, of ever larger shapes
        for case_id, kind, is_timed in _round(number):
            yield case_id, kind, random.Random(case_id).randrange(10_000, 4_000_000) if is_timed else None


def _round(number: int) -> tuple[tuple[str, str, bool], ...]:
    """Return id, kind, and whether there are times, of one case of each kind."""
    size = 64 * (number + 1)
    phase, role = ("prefill", "decode")[number % 2], ROLES[number % len(ROLES)].role
    step = "" if number < 2 * len(ROLES) else f"_{number}"
    return (
        (f"kernel/gemm/m{size}-n128-k576/f32", "kernel", True),
        (f"kernel/gemv_q8_0/m{size}-k2048/q8_0", "kernel", True),
        (f"kernel/rms_norm/rows{size}-columns576/f32", "kernel", True),
        (f"kernel/{WORKLOAD}/{phase}/kernel_mul_mm_q8_0_f32_{number}", "engine_kernel", True),
        (f"roofline/prompt/{ARCHITECTURE} {size}+32/{phase}", "roofline", True),
        (f"tokenizer/encode/tokens{size}", "tokenizer", True),
        (f"fidelity/{phase}/{role}{step}", "fidelity", False),
        (f"overhead/preload/{phase}{number}", "overhead", False),
        (f"trace/{WORKLOAD}/balance/{phase}/{role}{step}", "trace", False),
    )


#: What a slow SWIGLU makes slower, the phase that is told first at the head; new over old.
CHOSEN_CASES = {
    phase_id("prefill"): 1.158,
    operator_id("prefill", "ffn_swiglu"): 20.0,
    phase_id("end_to_end"): 1.172,
    phase_id("decode"): 1.215,
    operator_id("decode", "ffn_swiglu"): 22.0,
}

#: By the place of a case among those that did not regress, modulo 43; what is not here passes.
_OUTCOMES = {
    12: Outcome.IMPROVED,
    14: Outcome.INCONCLUSIVE,
    16: Outcome.NEW,
    19: Outcome.INVALID,
    23: Outcome.INCOMPARABLE,
    29: Outcome.SLOW,
    31: Outcome.SUSPECT,
    33: Outcome.INCONCLUSIVE,
    35: Outcome.NEW,
    37: Outcome.IMPOSSIBLE,
    41: Outcome.IMPROVED,
}

_FURTHER_RATIO = 1.08
_N_REPLICATES = 10
_NOISE_RATIO, _SESSION_RATIO = 0.015, 0.003


def planned_outcome(place: int) -> Outcome:
    """Return the outcome of the case at this place among those that did not regress."""
    return _OUTCOMES.get(place % 43, Outcome.PASS)


def synthetic_judgement(
    case: PlannedCase, outcome: Outcome, *, seed: int, change_ratio: float, has_pairs: bool
) -> Judgement:
    """Measure a case by chance, and judge it as planned; the stored baseline of `CHOSEN_CASES` has the change, too."""
    chance = random.Random(f"{seed}/{case.case_id}")
    if case.base_ns is None:
        return _untimed(case, outcome, chance)
    ratio = 1.0
    if outcome in (Outcome.REGRESSED, Outcome.SUSPECT):
        ratio = CHOSEN_CASES.get(case.case_id, _FURTHER_RATIO)
    elif outcome is Outcome.IMPROVED:
        ratio = chance.uniform(0.8, 0.92)
    drift = change_ratio if case.case_id in CHOSEN_CASES else 1.0
    old_ns = case.base_ns * drift * chance.gauss(1.0, _SESSION_RATIO)
    samples = _samples(old_ns * ratio, chance)
    if outcome is Outcome.INVALID:
        samples = samples[:2]
    if outcome in _NOT_COMPARED:
        return _timed(case, outcome, samples, None, _NOT_COMPARED[outcome])
    return _compared(case, outcome, samples, _samples(old_ns, chance), has_pairs and case.has_pairs)


_NOT_COMPARED = {
    Outcome.INVALID: "only 2 valid replicates, 3 are needed",
    Outcome.NEW: "no baseline yet; record one with --baseline=record",
    Outcome.INCOMPARABLE: "the baseline was recorded with threads 4, now 2",
}


def _samples(centre_ns: float, chance: random.Random) -> tuple[int, ...]:
    return tuple(max(1, round(centre_ns * chance.lognormvariate(0.0, _NOISE_RATIO))) for _ in range(_N_REPLICATES))


def _compared(
    case: PlannedCase, outcome: Outcome, samples: tuple[int, ...], old: tuple[int, ...], in_pairs: bool
) -> Judgement:
    ratio = median(new / before for new, before in zip(samples, old, strict=True))
    half_width = 0.12 if outcome is Outcome.INCONCLUSIVE else 0.012
    low, high = ratio * (1.0 - half_width), ratio * (1.0 + half_width)
    margin_ratio = 0.02 if case.kind == "phase" else 0.05
    reason = f"{format_change(ratio)} ({format_change(low)} to {format_change(high)}), margin {margin_ratio * 100:g} %"
    is_open = outcome in (Outcome.SUSPECT, Outcome.INCONCLUSIVE)
    if is_open:
        reason += "; the smallest detectable change is +12.6 %, about 24 more pairs would decide"
    pairs: dict[str, Any] = {
        "baseline_samples_ns": old,
        "n_pairs": _N_REPLICATES,
        "n_more_pairs": 24 if is_open else None,
        "smallest_effect_ratio": 1.126 if is_open else 1.03,
    }
    return replace(
        _timed(case, outcome, samples, median(old), reason),
        change_ratio=ratio,
        lower_ratio=low,
        upper_ratio=high,
        margin_ratio=margin_ratio,
        resolution_ratio=margin_ratio,
        **(pairs if in_pairs else {}),
    )


def _timed(
    case: PlannedCase, outcome: Outcome, samples: tuple[int, ...], baseline_ns: float | None, reason: str
) -> Judgement:
    """Return a judgement with a forecast about the usual time; what is slow or impossible breaks its bound."""
    base_ns = case.base_ns or 0
    measured_ns = round(median(samples))
    floor_ns, limit_ns = base_ns // 10, base_ns * 26
    if outcome is Outcome.SLOW:
        limit_ns = round(measured_ns / 1.3)
        reason = f"{format_ns(measured_ns)} is more than the {format_ns(limit_ns)} that the forecast allows"
    if outcome is Outcome.IMPOSSIBLE:
        floor_ns = round(measured_ns * 1.4)
        reason = f"{format_ns(measured_ns)} is below the floor of {format_ns(floor_ns)}: measured wrongly"
    has_interval = case.kind in ("phase", "operator")
    expected_ns = max(floor_ns, round(min(base_ns * 1.05, limit_ns)))
    return Judgement(
        case_id=case.case_id,
        kind=case.kind,
        samples_ns=samples,
        measured_ns=measured_ns,
        floor_ns=None if case.case_id.endswith("/rest") else floor_ns,
        expected_ns=expected_ns,
        limit_ns=limit_ns if has_interval or outcome is Outcome.SLOW else None,
        baseline_ns=None if baseline_ns is None else round(baseline_ns),
        change_ratio=None,
        outcome=outcome,
        reason=reason,
        lower_ns=round(expected_ns * 0.8) if has_interval else None,
        upper_ns=round(expected_ns * 1.3) if has_interval else None,
    )


def _untimed(case: PlannedCase, outcome: Outcome, chance: random.Random) -> Judgement:
    """Return what a case without times tells: passed, or not to be decided."""
    told = outcome if outcome is Outcome.INCONCLUSIVE else Outcome.PASS
    ratio = round(chance.uniform(1.0, 1.05), 4)
    if case.kind == "overhead":
        return told_judgement(case.case_id, case.kind, told, f"{format_change(ratio)} with the recorder", ratio)
    return told_judgement(case.case_id, case.kind, told, f"busiest of 2 threads over their mean {ratio:.2f}")

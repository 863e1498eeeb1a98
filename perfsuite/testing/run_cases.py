"""The cases of a made-up run: their ids, kinds and times, the same in every run."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

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
    endless = itertools.chain(_phases(), _named(names), _operators(), _others())
    return tuple(itertools.islice(endless, n_cases))


def _phases() -> Iterator[PlannedCase]:
    order = ("prefill", "decode", "end_to_end", "embedding", "copy", "softmax", "sampling")
    for phase in order:
        yield PlannedCase(case_id=phase_id(phase), kind="phase", base_ns=PHASES_NS[phase])


def _named(names: Sequence[str]) -> Iterator[PlannedCase]:
    """Cases of a third party's tests; the first two names are kinds too."""
    for name in names:
        yield PlannedCase(case_id=f"tokenizer/{name}", kind="tokenizer", base_ns=40_000)
    for name in names[:2]:
        kind = name.partition("/")[0]
        yield PlannedCase(case_id=f"{name}/encode", kind=kind, base_ns=40_000)


def _operators() -> Iterator[PlannedCase]:
    for phase, whole_ns in (("prefill", PHASES_NS["prefill"]), ("decode", PHASES_NS["decode"])):
        times = {each.role: each.prefill_ns if phase == "prefill" else each.decode_ns for each in ROLES}
        for role, time_ns in {**times, "rest": whole_ns - sum(times.values())}.items():
            yield PlannedCase(case_id=operator_id(phase, role), kind="operator", base_ns=time_ns)


def _others() -> Iterator[PlannedCase]:
    """Cases of all other kinds in turn, of ever larger shapes."""
    for number in itertools.count():
        for case_id, kind, is_timed in _round(number):
            base_ns = random.Random(case_id).randrange(10_000, 4_000_000) if is_timed else None
            yield PlannedCase(case_id=case_id, kind=kind, base_ns=base_ns)


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

"""Which group of measurements each kind of case belongs to: what was measured together, with one fingerprint."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from perfsuite.records.events import Phase
from perfsuite.records.outcome import Outcome

#: The suite's own OpenCL kernels.
KERNELS = "kernels"

#: The kind and the group of kernels that your own tests have built with pyopencl.
OPENCL = "opencl"

#: The kind and the group of counted work, which has no time.
COUNTED = "counted"

#: By kind of case: its group, which also has its file of baselines.
GROUP_OF_KIND = {
    "phase": "llama",
    "operator": "llama",
    "engine_kernel": "llama",
    "kernel": KERNELS,
    OPENCL: OPENCL,
    "binding": "binding",
    "percentile": "binding",
    "roofline": "roofline",
    "fidelity": "fidelity",
    "overhead": "overhead",
    "trace": "trace",
    COUNTED: COUNTED,
    "shape-hunt": "shapes",
    "shape-kept": "shapes",
}


def group_of_kind(kind: str) -> str:
    """Return the group of a kind of cases; a kind that another wheel brings is its own group."""
    return GROUP_OF_KIND.get(kind, kind)


_QUESTIONS = (Phase.END_TO_END, Phase.PREFILL, Phase.DECODE, Phase.EMBED)


def is_question(case_id: str) -> bool:
    """Whether a case is what a run is asked first: a phase that is the whole run, reads the prompt or writes."""
    kind, *_, phase = case_id.split("/")
    return kind == "phase" and phase in _QUESTIONS


def has_no_answer(outcomes: Mapping[str, Outcome]) -> bool:
    """Whether a run was asked questions, and could compare none; of the outcomes of its cases by id."""
    found = {outcome for case_id, outcome in outcomes.items() if is_question(case_id)}
    return bool(found) and found <= {Outcome.INVALID, Outcome.INCOMPARABLE}


#: The cases that tests of one's own measure; also the name of their file.
OWN_GROUP = "own"


def group_of_own(kind: str) -> str:
    """Return the group of a case that your own test has measured."""
    return OPENCL if kind == OPENCL else OWN_GROUP


def group_of(kind: str, measured: Collection[str]) -> str:
    """Return the group of a case in a run that measured these groups; a kind of another's is a test's own."""
    name = GROUP_OF_KIND.get(kind, OWN_GROUP)
    return name if name in measured else OWN_GROUP

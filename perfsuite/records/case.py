"""What is judged: a case by its id, with its costs, and how long it is expected to take."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from perfsuite.errors import PerfsuiteError, meant
from perfsuite.records.events import Phase
from perfsuite.records.op_cost import OpCost
from perfsuite.records.outcome import Outcome

#: Role of what a phase spends outside its operators: graph construction, inputs, launch.
REST_ROLE = "rest"

#: The kind of the cases of kernels that the engine launches itself; the suite's own are of the kind ``kernel``.
ENGINE_KERNEL = "engine_kernel"


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseCost:
    """A cost with what decides how fast it can run."""

    cost: OpCost
    #: Type of the weights, or of the keys, which decides the fastest arithmetic; ``f32`` where there are neither.
    type: str
    #: Bytes over which the parameters are spread before one of them is read again.
    working_set_bytes: int
    #: Bytes that pass between writing an activation and reading it back, which decides the level that it is read from;
    #: None where nothing passes but the operator's own.
    activation_set_bytes: int | None = None
    #: The fewest and the most parameters that any routing reads; None where that is no question of routing.
    least_parameter_bytes: int | None = None
    most_parameter_bytes: int | None = None

    @property
    def floor_parameter_bytes(self) -> int:
        """Parameters that must be read whatever a router decides."""
        return self.cost.parameter_bytes if self.least_parameter_bytes is None else self.least_parameter_bytes

    @property
    def ceiling_parameter_bytes(self) -> int:
        """Parameters that are read where a router spreads its tokens over as many experts as it can."""
        return self.cost.parameter_bytes if self.most_parameter_bytes is None else self.most_parameter_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One thing that is judged."""

    case_id: str
    kind: str
    #: The parts that its time is made of; empty where no forecast is known.
    costs: tuple[CaseCost, ...] = ()
    phase: Phase | None = None
    role: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Expectation:
    """The forecast of one case, ns; None where nothing is known."""

    floor_ns: int | None = None
    expected_ns: int | None = None
    limit_ns: int | None = None
    #: The interval that is meant to hold nine measurements of ten; only a calibration gives one.
    lower_ns: int | None = None
    upper_ns: int | None = None


_MOST_LISTED = 4


def named_case(asked: str, case_ids: Iterable[str], where: str) -> str:
    """Return the id that is meant: the whole of it, or whole parts of its end, such as ``decode/ffn_up``.

    Raises PerfsuiteError: no id ends so, or several do. `where` is what the line begins with, such as ``--case=``.
    """
    known = tuple(dict.fromkeys(case_ids))
    found = [asked] if asked in known else [each for each in known if f"/{each}".endswith(f"/{asked}")]
    if len(found) == 1:
        return found[0]
    if not found:
        alike = meant(asked, (*known, *ends_of(known, asked.count("/") + 1)))
        raise PerfsuiteError(f"{where}{asked}: no case has this id, or ends so{alike}")
    more = f" and {len(found) - _MOST_LISTED} more" if len(found) > _MOST_LISTED else ""
    listed = ", ".join(found[:_MOST_LISTED])
    raise PerfsuiteError(f"{where}{asked}: {len(found)} cases end so: {listed}{more}; name more parts of one")


def ends_of(case_ids: Iterable[str], n_parts: int) -> tuple[str, ...]:
    """Return the last parts of ids, each end once."""
    return tuple(dict.fromkeys("/".join(each.split("/")[-n_parts:]) for each in case_ids))


KERNELS = "kernels"

#: The kind and the group of kernels that your own tests have built with pyopencl.
OPENCL = "opencl"

#: The kind and the group of counted work, which has no time.
COUNTED = "counted"

#: The group of what a run of the engine takes, whose file of baselines has the name of the model.
ENGINE_GROUP = "llama"

#: By kind of case: its group, which also has its file of baselines.
GROUP_OF_KIND = {
    "phase": ENGINE_GROUP,
    "operator": ENGINE_GROUP,
    "engine_kernel": ENGINE_GROUP,
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

"""Cases of the binding: which there are, and how what it adds to the native driver is judged."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from perfsuite.expectation.cases import Case
from perfsuite.experiments.binding.measurement import (
    N_PAIRS,
    BindingPair,
    binding_cases,
    explained_ratio,
    is_asked,
    is_beside_native,
    overhead_judgement,
)
from perfsuite.records.binding import Door, Part
from perfsuite.records.events import EngineRecord
from perfsuite.records.outcome import Outcome

_RECORD = EngineRecord(engine_version="", spans=(), graphs=(), n_dropped=0)
_MS = 1_000_000


def pair(itl_ms: float, *, python_ms: float = 0.1, native_ms: float = 10.0) -> BindingPair:
    """Return a pair whose binding takes so long for a token, of which Python has a part."""
    name = f"{Door.COMPLETION.value}/itl"
    return BindingPair(
        binding_ns={name: round(itl_ms * _MS), f"{name}/{Part.PYTHON.value}": round(python_ms * _MS)},
        native_ns={"itl": native_ms * _MS},
        native_sampling_ns=0.0,
        span_cost_ns=500,
        engine=_RECORD,
    )


def config(**changes: Any) -> Any:
    """Return what decides whether there are cases."""
    scenario = SimpleNamespace(n_prompt=8, n_gen=4, n_depth=0, name="siso")
    workload = SimpleNamespace(scenario=scenario, prefix="tiny/siso", is_alone=True)
    found = {
        "workload": workload,
        "prompt_lengths": (),
        "board": SimpleNamespace(is_local=True),
        "backend": "cpu",
        "is_against": False,
        "is_planned": False,
        "engine": SimpleNamespace(is_packaged=True),
    }
    return SimpleNamespace(**{**found, **changes})


CASE = Case(case_id="binding/tiny/siso/completion/overhead/itl", kind="binding", role="completion/overhead/itl")


@pytest.mark.parametrize(
    "changes",
    [
        {"board": SimpleNamespace(is_local=False)},
        {"backend": "opencl"},
        {"is_against": True},
        {"is_planned": True},
        {"prompt_lengths": (3, 4)},
        {"workload": SimpleNamespace(**{**vars(config().workload), "is_alone": False})},
        {"engine": SimpleNamespace(is_packaged=False)},
    ],
)
def test_there_are_cases_of_the_packaged_engine_on_this_machine(changes: Mapping[str, Any]) -> None:
    """The binding fits its own libraries alone, and Python is not everywhere."""
    assert is_asked(config())
    assert not is_asked(config(**changes))


def test_cases_name_door_latency_and_part() -> None:
    """Every id is one; the calls copy logits, and a completion does not."""
    names = [case.case_id.removeprefix("binding/tiny/siso/") for case in binding_cases(config())]
    assert len(names) == len(set(names)) == 39
    assert {"load", "calls/ttft", "completion/itl-p99", "calls/itl/logits", "completion/overhead/itl"} <= set(names)
    assert not {"completion/itl/logits", "calls/itl/tokenize"} & set(names)


@pytest.mark.parametrize(
    ("itl_ms", "python_ms", "outcome"),
    [
        ([10.1] * N_PAIRS, 0.1, Outcome.PASS),
        ([12.0] * N_PAIRS, 2.0, Outcome.PASS),
        ([12.0] * N_PAIRS, 0.1, Outcome.SLOW),
        ([10.1, 10.1, 12.0, 12.0, 12.0], 0.1, Outcome.INCONCLUSIVE),
        ([10.1] * (N_PAIRS - 1), 0.1, Outcome.INVALID),
    ],
)
def test_what_spans_do_not_explain_is_slow(itl_ms: list[float], python_ms: float, outcome: Outcome) -> None:
    """A binding that takes long and says where passes here, for its parts are cases of their own."""
    pairs = [pair(each, python_ms=python_ms) for each in itl_ms]
    assert overhead_judgement(CASE, pairs, ()).outcome is outcome


def test_a_problem_is_the_reason() -> None:
    """Nothing is judged of what cannot be trusted."""
    judgement = overhead_judgement(CASE, [pair(10.0)] * N_PAIRS, ("the recorder lost events",))
    assert (judgement.outcome, judgement.reason) == (Outcome.INVALID, "the recorder lost events")


def test_a_text_of_one_token_has_no_latency_between_tokens() -> None:
    """A real model may end its text at once."""
    pairs = [replace(pair(10.0), binding_ns={"load": 1})] * N_PAIRS
    assert "ended its text" in overhead_judgement(CASE, pairs, ()).reason


def test_the_native_choice_of_a_token_is_no_part_of_the_gap() -> None:
    """Both sides choose one, so only the difference counts."""
    chosen = replace(pair(10.1), native_sampling_ns=0.05 * _MS)
    assert explained_ratio([chosen], Door.COMPLETION, "itl") == pytest.approx(1.005)


def test_wholes_follow_the_native_driver() -> None:
    """Parts are work of Python's and of the sampler's own."""
    assert is_beside_native("binding/m/s/calls/itl")
    assert is_beside_native("binding/m/s/calls/ttft/decode")
    assert not is_beside_native("binding/m/s/calls/itl/sampling")
    assert not is_beside_native("binding/m/s/calls/itl-p95")

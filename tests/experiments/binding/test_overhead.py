"""Where there are cases of the binding, and how what it adds to the native driver is judged."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from perfsuite.experiments.binding.experiment import Binding, is_asked
from perfsuite.experiments.binding.overhead import BindingSide, NativePair, explained_ratio, overhead_judgement
from perfsuite.records.binding import TOKENS_PER_S, Door, Part
from perfsuite.records.case import Case
from perfsuite.records.events import EngineRecord
from perfsuite.records.outcome import Outcome

_RECORD = EngineRecord(engine_version="", spans=(), graphs=(), n_dropped=0)
_MS = 1_000_000
CASE = Case(case_id="binding/tiny/siso/completion/overhead", kind="binding", role="completion/overhead")


def pair(request_ms: float, *, python_ms: float = 0.1) -> NativePair:
    """Return a pair whose binding takes so long for a request by its token, of which Python has a part."""
    door = Door.COMPLETION.value
    parts = {f"{door}/{whole}/{Part.PYTHON.value}": round(python_ms * _MS) for whole in ("ttft", "itl")}
    return NativePair(
        binding=BindingSide(
            samples_ns={f"{door}/{TOKENS_PER_S}": round(request_ms * _MS), **parts},
            gaps_ns={},
            span_cost_ns=500,
            engine=_RECORD,
        ),
        native_ns={TOKENS_PER_S: 10.0 * _MS},
        native_sampling_ns=0.0,
        n_gen=4,
    )


@pytest.mark.parametrize(
    ("request_ms", "python_ms", "outcome"),
    [
        ([10.1, 10.11, 10.12], 0.1, Outcome.PASS),
        ([12.0, 12.01, 12.02], 2.0, Outcome.PASS),
        ([12.0, 12.01, 12.02], 0.1, Outcome.SLOW),
        ([10.1, 10.2, 12.0], 0.1, Outcome.INCONCLUSIVE),
        ([10.81, 10.96, 11.01], 0.31, Outcome.INCONCLUSIVE),  # three pairs beside a neighbour
        ([10.1, 10.11], 0.1, Outcome.INVALID),
    ],
)
def test_what_spans_do_not_explain_is_slow(request_ms: list[float], python_ms: float, outcome: Outcome) -> None:
    """A binding that takes long and says where passes here, for its parts are cases of their own."""
    pairs = [pair(each, python_ms=python_ms) for each in request_ms]
    assert overhead_judgement(CASE, pairs, ()).outcome is outcome


def test_what_cannot_be_compared_is_told() -> None:
    """A real model may end its text at once."""
    judgement = overhead_judgement(CASE, [pair(10.0)] * 3, ("the recorder lost events",))
    assert (judgement.outcome, judgement.reason) == (Outcome.INVALID, "the recorder lost events")
    short = replace(pair(10.0), binding=replace(pair(10.0).binding, samples_ns={"load": 1}))
    assert "ended its text" in overhead_judgement(CASE, [short] * 3, ()).reason


def test_the_native_choice_of_a_token_is_no_part_of_the_gap() -> None:
    """Both sides choose one, so only the difference counts."""
    chosen = replace(pair(10.1), native_sampling_ns=0.05 * _MS)
    assert explained_ratio([chosen], Door.COMPLETION, TOKENS_PER_S) == pytest.approx(1.005)


def config(**changes: Any) -> Any:
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


@pytest.mark.parametrize(
    "changes",
    [
        {"board": SimpleNamespace(is_local=False)},
        {"backend": "opencl"},
        {"is_against": True},
        {"prompt_lengths": (3, 4)},
        {"workload": SimpleNamespace(**{**vars(config().workload), "is_alone": False})},
        {"engine": SimpleNamespace(is_packaged=False)},
    ],
)
def test_there_are_cases_of_the_packaged_engine_on_this_machine(changes: Mapping[str, Any]) -> None:
    """The binding fits its own libraries alone, and Python is not everywhere."""
    assert is_asked(config())
    assert not is_asked(config(**changes))


def test_wholes_follow_the_native_driver() -> None:
    """Parts are work of Python's and of the sampler's own."""
    config: Any = None
    spreads = [
        Binding(config=config).session_spread_ratio(f"binding/m/s/calls/{name}", 0.2)
        for name in ("itl", "ttft/decode", "itl/sampling", "itl-p95")
    ]
    assert spreads == [0.03, 0.03, 0.2, 0.2]

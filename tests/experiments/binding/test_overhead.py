"""How what the binding adds to the native driver is judged."""

from __future__ import annotations

from dataclasses import replace

import pytest

from perfsuite.expectation.cases import Case
from perfsuite.experiments.binding.overhead import BindingSide, NativePair, explained_ratio, overhead_judgement
from perfsuite.records.binding import TOKENS_PER_S, Door, Part
from perfsuite.records.events import EngineRecord
from perfsuite.records.outcome import Outcome

_RECORD = EngineRecord(engine_version="", spans=(), graphs=(), n_dropped=0)
_MS = 1_000_000
CASE = Case(case_id="binding/tiny/siso/completion/overhead", kind="binding", role="completion/overhead")


def pair(request_ms: float, *, python_ms: float = 0.1, native_ms: float = 10.0) -> NativePair:
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
        native_ns={TOKENS_PER_S: native_ms * _MS},
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

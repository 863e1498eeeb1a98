"""How far a measurement of a policy is."""

from __future__ import annotations

from perfsuite.cli.policy_progress import announce, progress_of

from ..synthetic_shape_policy import backend_question
from .conftest import Streams


def test_the_time_left_follows_from_the_rounds_before(capsys: Streams) -> None:
    """The clock starts with the first; lines come some seconds apart, on standard error, and the last one always."""
    times = iter([0.0, 100.0, 101.0, 104.0, 105.0, 105.5])
    tell = progress_of("tiling", clock=lambda: next(times))
    for done in range(5):
        tell(done, 4)
    out, err = capsys.readouterr()
    assert out == ""
    assert err.splitlines() == ["policy: tiling, round 2 of 4, 4.00 s left", "policy: tiling, round 4 of 4"]


def test_what_begins_is_told(capsys: Streams) -> None:
    """Before anything is computed, for that may take a while."""
    announce(backend_question())
    assert capsys.readouterr().err.startswith("policy: backend, 2 choices at 13 sizes, each compared with NumPy")

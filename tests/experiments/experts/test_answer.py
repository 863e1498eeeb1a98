"""How experts are reused, told to machines."""

from __future__ import annotations

import json

from perfsuite.experiments.experts.answer import plain_experts
from tests.experiments.experts.test_view import report


def test_a_report_is_json() -> None:
    """Layers, caches of all sizes, the one that was asked for and the relation to time are all there."""
    plain = json.loads(json.dumps(plain_experts(report()), allow_nan=False))
    assert [each["layer"] for each in plain["layers"]] == [0, 1]
    assert [each["n_cached"] for each in plain["caches"]] == list(range(1, 9))
    assert plain["cache"] == plain["caches"][2]
    assert plain["faults"]["n_evaluations"] == 60
    assert plain["faults"]["n_major_faults"] is None
    assert set(plain["faults"]["distance_to_time"]) == {"rho", "p"}

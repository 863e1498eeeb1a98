"""Checks of policies as JSON."""

from __future__ import annotations

import json

from perfsuite.cli.policy_json import checks_plain

from ..synthetic_shape_policy import policy_table
from .test_policy_tables import checks


def test_checks_are_plain() -> None:
    """Promised and measured gains stand beside each other; what was not measured is null."""
    plain = json.loads(json.dumps(checks_plain([(policy_table(), checks())])))
    ((table,), schema) = plain["tables"], plain["schema"]
    assert (schema, table["table"]) == (1, "backend of gemv, f16, k 512")
    first, second = table["checks"]
    assert (first["least"], first["most"], first["choice"], first["over"]) == (21, 512, "opencl", "cpu")
    assert first["measured"] == first["promised"]
    assert (first["sizes"], first["fitted_sizes"], first["holding"], first["reason"]) == ([64, 70], [64], "holds", None)
    assert (second["measured"], second["holding"]) == (None, "fails")

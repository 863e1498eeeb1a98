"""Outputs of two sides, compared."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

from perfsuite.records.engine_columns import OUTPUT_DTYPE
from perfsuite.records.events import EngineRecord
from perfsuite.verdict.outputs import other_outputs, output_errors

EMPTY = EngineRecord(engine_version="", spans=(), graphs=(), n_dropped=0)


def _record(noise_ratio: float, *, shift: float = 0.0, n_other_tokens: int = 0) -> EngineRecord:
    random = np.random.default_rng(1)
    rows = np.zeros(8, OUTPUT_DTYPE)
    rows["phase"] = [1, 2] * 4
    rows["values"] = random.normal(size=(8, 64)) * 0.1
    rows["values"] += shift + noise_ratio * 0.1 * random.normal(size=(8, 64))
    tokens = np.arange(8, dtype="<i4")
    tokens[:n_other_tokens] += 1
    return replace(EMPTY, outputs=rows.tobytes(), chosen_tokens=tokens.tobytes())


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (_record(0.0), None),
        (_record(0.05, shift=3.0, n_other_tokens=2), None),
        (
            _record(0.5),
            "outputs: the logits of prefill, by their spread, differ by 59 % .limit 10 %.; the logits of decode",
        ),
        (_record(float("nan")), "outputs: the logits of prefill, by their spread, differ by nan %"),
        (_record(0.0, n_other_tokens=5), "outputs: the greedy tokens differ by 62 % .limit 25 %.$"),
        (EMPTY, None),
    ],
)
def test_what_is_more_than_rounding_is_said(other: EngineRecord, message: str | None) -> None:
    problem = other_outputs([output_errors(_record(0.0), other)])
    assert (problem is None) == (message is None)
    assert re.search(message or "", problem or "")

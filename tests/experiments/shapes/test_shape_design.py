"""The budgets of verdicts on shapes."""

from __future__ import annotations

from typing import Any

import pytest

from perfsuite.experiments.shapes.shape_design import SHAPE_DESIGNS, ShapeDesign


def test_longer_designs_err_less() -> None:
    """From quick to nightly there are more pairs, each with a smaller error; each confirms on two processes or more."""
    quick, default, nightly = (SHAPE_DESIGNS[name] for name in ("quick", "default", "nightly"))
    assert quick.n_pairs < default.n_pairs < nightly.n_pairs
    assert quick.alpha > default.alpha > nightly.alpha
    assert min(each.n_confirmations for each in SHAPE_DESIGNS.values()) >= 2


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"n_pairs": 4, "alpha": 0.05}, "alpha is 0.05 of 4 pairs, expected at least 0.0625"),
        ({"n_pairs": 0}, "of 0 pairs"),
        ({"alpha": 0.5}, "below 0.5"),
        ({"n_confirmations": 0}, "n_confirmations is 0"),
    ],
)
def test_a_design_that_could_decide_nothing_is_refused(changes: dict[str, Any], complaint: str) -> None:
    """The error says what was expected."""
    with pytest.raises(ValueError, match=complaint):
        ShapeDesign(**{"n_pairs": 10, "alpha": 0.05, **changes})

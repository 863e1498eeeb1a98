"""Lines of least squares."""

from __future__ import annotations

from math import hypot

import pytest

from perfsuite.trace.statistics.line_fit import fit_line


def test_points_on_a_line_give_that_line() -> None:
    """Slope, intercept and an R² of 1 come out, and no point is off."""
    fit = fit_line([1e6, 2e6, 5e6], [12.0, 22.0, 52.0])
    assert fit is not None
    assert (fit.slope, fit.intercept) == (pytest.approx(1e-5), pytest.approx(2.0))
    assert (fit.r_squared, fit.residual) == (pytest.approx(1.0), pytest.approx(0.0, abs=1e-6))
    assert fit.deviations_ratio == pytest.approx((0.0, 0.0, 0.0), abs=1e-6)
    assert fit.at(0.0) == pytest.approx(2.0)


def test_a_relative_line_is_not_ruled_by_the_largest() -> None:
    """Each line is the nearest by its own measure: in parts of y, or in y itself."""
    x, y = [1.0, 2.0, 4.0, 1000.0], [10.0, 20.0, 40.0, 1500.0]
    plain, relative = fit_line(x, y), fit_line(x, y, is_relative=True)
    assert plain is not None
    assert relative is not None
    parts = [[each.at(one) / other - 1.0 for one, other in zip(x, y, strict=True)] for each in (relative, plain)]
    assert hypot(*parts[0]) < hypot(*parts[1])
    assert plain.residual < relative.residual


@pytest.mark.parametrize(("x", "y"), [([], []), ([1.0, 2.0], [1.0, 2.0]), ([3.0] * 4, [1.0, 2.0, 3.0, 4.0])])
def test_what_makes_no_line_has_none(x: list[float], y: list[float]) -> None:
    """Two points, or one x, say nothing of a line."""
    assert fit_line(x, y) is None


def test_a_level_series_has_no_r_squared() -> None:
    """Where all y are the same there is no variance to explain."""
    fit = fit_line([1.0, 2.0, 3.0], [5.0, 5.0, 5.0])
    assert fit is not None
    assert fit.r_squared is None

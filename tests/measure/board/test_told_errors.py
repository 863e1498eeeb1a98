"""An error arrives as what it was, in one line."""

from __future__ import annotations

import errno

import pytest

from perfsuite.errors import DeviceError, LinkError, LockedError, MeasurementError, PerfsuiteError, ShapeCrashError
from perfsuite.measure.board.facts import BoardFacts
from perfsuite.measure.board.told_errors import raised_again, told_error, understood


@pytest.mark.parametrize("kind", [DeviceError, LinkError, LockedError, MeasurementError, PerfsuiteError])
def test_an_error_of_the_suite_stays_what_it_was(kind: type[PerfsuiteError]) -> None:
    """Class and text are those of the board; lines become one."""
    again = raised_again(told_error(kind("a\nb")))
    assert (type(again), str(again)) == (kind, "a b")


def test_what_the_system_refuses_is_told_in_its_words() -> None:
    """A full disk is named with the file."""
    again = raised_again(told_error(OSError(errno.ENOSPC, "No space left on device", "/x")))
    assert (type(again), str(again)) == (MeasurementError, "/x: No space left on device")


def test_a_defect_is_told_with_its_class() -> None:
    """What is no error of the suite's is a `MeasurementError` that names it."""
    assert str(raised_again(told_error(KeyError("x")))) == "KeyError: 'x'"


@pytest.mark.parametrize("plain", [None, "x", {}, {"class": "os", "text": "x"}, {"class": "annotations", "text": "x"}])
def test_an_error_that_is_not_known_is_one_of_measurement(plain: object) -> None:
    """Whatever comes is an error in one line, and nothing that the text names is run."""
    assert type(raised_again(plain)) is MeasurementError


def test_an_error_that_carries_more_than_text_keeps_its_text() -> None:
    """A shape that crashed is told by its line."""
    again = raised_again(told_error(ShapeCrashError("gemm/x", "killed")))
    assert (type(again), str(again)) == (MeasurementError, "gemm/x: killed")


@pytest.mark.parametrize("plain", [None, 1, [], {}, {"engine": None}, {"engine": {}}])
def test_an_answer_that_is_another_is_a_broken_link(plain: object) -> None:
    """Whatever a board answers, it is one line that names what was asked for."""
    with pytest.raises(LinkError, match=r"^what the board answered to 'facts' cannot be read \(\w+: .*devices setup"):
        understood("facts", BoardFacts.from_plain, plain)

"""What is kept of a device is in a file of its own."""

from __future__ import annotations

from pathlib import Path

from perfsuite.measure.device_file import device_file

FINGERPRINT = {"soc": "A", "governor": "performance"}


def test_all_that_decides_makes_another_file() -> None:
    """Neither another fingerprint nor another board, and nothing else that decides, shares a file."""
    paths = {
        device_file(Path("kept"), fingerprint, *which, board=board)
        for fingerprint in (FINGERPRINT, {"soc": "B"}, {})
        for which in ((), (1,), (11,), ("1",), ("build", 1))
        for board in (None, "b1", "b2")
    }
    assert len(paths) == 45
    assert {each.parent for each in paths} == {Path("kept")}


def test_the_order_of_the_fingerprint_says_nothing() -> None:
    """The same fields in another order are the same device."""
    turned = dict(reversed(FINGERPRINT.items()))
    assert device_file(Path(), turned, 2, board="b") == device_file(Path(), FINGERPRINT, 2, board="b")


def test_older_versions_have_left_files_of_this_name() -> None:
    """Without a board, names stay as they were."""
    assert device_file(Path(), FINGERPRINT, "0123456789abcdef", 2, board=None) == Path("05ee291f194f0ae7.json")

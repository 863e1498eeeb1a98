"""What is kept of a device is in a file of its own."""

from __future__ import annotations

from pathlib import Path

from perfsuite.measure.device_file import device_file

DEVICE = {"soc": "A", "governor": "performance"}


def test_all_that_decides_makes_another_file() -> None:
    """Neither another fingerprint nor another board, and nothing else that decides, shares a file."""
    paths = {
        device_file(Path("kept"), fingerprint, *which, board=board)
        for fingerprint in (DEVICE, {"soc": "B"}, {})
        for which in ((), (1,), (11,), ("1",), ("build", 1))
        for board in (None, "b1", "b2")
    }
    assert len(paths) == 45
    assert {each.parent for each in paths} == {Path("kept")}


def test_the_order_of_the_fingerprint_says_nothing() -> None:
    """The same fields in another order are the same device."""
    turned = dict(reversed(DEVICE.items()))
    assert device_file(Path(), turned, 2, board="b") == device_file(Path(), DEVICE, 2, board="b")

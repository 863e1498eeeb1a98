"""A run of a few lines for the tests: borrows a board, says which, and holds it until its standard input ends.

python farm_borrower.py COORDINATOR KIND [--wait TIME] [--break PLACE] [--hold SECONDS] [--fail]
"""

from __future__ import annotations

import argparse
import select
import sys
import time

from perfsuite.device.farm.borrowing import borrowed_board
from perfsuite.device.farm.request import farm_request
from perfsuite.device.reach import Reach
from perfsuite.errors import PerfsuiteError


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("coordinator")
    parser.add_argument("kind")
    parser.add_argument("--wait", default="1h")
    parser.add_argument("--break", dest="broken_place")
    parser.add_argument("--hold", type=float, default=60.0)
    parser.add_argument("--fail", action="store_true")
    options = parser.parse_args()
    request = farm_request(options.coordinator, wait=options.wait, broken_place=options.broken_place)
    try:
        with borrowed_board(options.kind, Reach(way="ssh"), request, tell=_told) as board:
            _told(f"got {board.place} {board.supervisor_pid} at {time.monotonic()}")
            select.select([0], [], [], options.hold)
            _told(f"done at {time.monotonic()}")
            if options.fail:
                raise RuntimeError("the run fails")
    except PerfsuiteError as error:
        _told(f"error: {error}")
        return 2
    return 0


def _told(text: str) -> None:
    print(text, flush=True)


if __name__ == "__main__":
    sys.exit(main())

"""Prints the tests that failed in a run, a node id a line, where they are so few that neighbours may have done it.

python -m tests.failed_tests CACHE    # the folder that pytest had as its cache
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

#: More are no neighbour's doing.
_MOST = 3


def failed_tests(cache: Path) -> tuple[str, ...]:
    """Return the node ids of at most three failed tests; none where more failed, or a whole file did."""
    try:
        found = json.loads((cache / "v/cache/lastfailed").read_text(encoding="utf-8"))
    except FileNotFoundError:
        return ()
    failed = tuple(node for node, has_failed in found.items() if has_failed)
    return failed if len(failed) <= _MOST and all("::" in node for node in failed) else ()


if __name__ == "__main__":
    for node in failed_tests(Path(sys.argv[1])):
        print(node)

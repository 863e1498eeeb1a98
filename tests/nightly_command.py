"""``perfsuite nightly`` in a process of its own, with the stub in the place of pytest."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path

from perfsuite.cli import main, nightly
from perfsuite.nightly import night_plan
from perfsuite.nightly.conduct import Night

STUB = (sys.executable, str(Path(__file__).resolve().with_name("nightly_stub.py")))

if __name__ == "__main__":
    night_plan.refuse_unknown_model = lambda _: None
    nightly.Night = partial(Night, program=STUB)  # type: ignore[misc, assignment]
    sys.exit(main(["nightly", *sys.argv[1:]]))

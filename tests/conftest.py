"""Stored records, so that nothing here is measured."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from perfsuite.measure.plan import load_record
from perfsuite.records.events import EngineRecord

DATA = Path(__file__).parent / "data"

#: The run that tests/data holds: 64 tokens of prompt, 24 generated, two layers of SmolLM2-135M in Q8_0, two threads.
STORED_MODEL = "smollm2-135m-l2-q8_0"


@pytest.fixture(scope="session")
def stored_payload() -> dict[str, Any]:
    """Return what a worker sent for one replicate."""
    return load_record((DATA / f"{STORED_MODEL}-siso.msgpack").read_bytes(), "llama")


@pytest.fixture(scope="session")
def stored_record(stored_payload: dict[str, Any]) -> EngineRecord:
    """Return the engine's record of that replicate."""
    return EngineRecord.from_plain(stored_payload["engine"])

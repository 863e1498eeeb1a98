"""What backends are called."""

from __future__ import annotations

from perfsuite.testing.bpf_logs import CPU_GUID
from perfsuite.trace.ebpf.backend_names import backend_name


def test_a_guid_that_is_known_has_a_name() -> None:
    """The guid of ggml's CPU backend is that of its source."""
    assert backend_name(CPU_GUID) == "CPU"


def test_another_guid_stays_one() -> None:
    """A backend that nobody has heard of is told by its guid."""
    assert backend_name(memoryview(bytes(range(16)))) == "guid:000102030405060708090a0b0c0d0e0f"

"""Kernel probes: where they are set, and a real run where this user may set them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from perfsuite.errors import MeasurementError
from perfsuite.measure.launch import run_worker
from perfsuite.measure.plan import LlamaPlan, UprobePlan
from perfsuite.measure.uprobes import PMU_TYPE, ProbePlace, place_of
from perfsuite.records.call_trace import CallTrace
from perfsuite.records.events import EngineRecord, Phase
from perfsuite.trace.call_spans import CallPattern, call_spans

MAPS = """\
7f0000000000-7f0000001000 r--p 00000000 08:01 42    /lib/a library.so.0
7f0000001000-7f0000005000 r-xp 00001000 08:01 42    /lib/a library.so.0
7f0000005000-7f0000006000 rw-p 00000000 00:00 0
7f0000006000-7f0000007000 r-xp 00000000 00:00 0     [vdso]
"""


def test_an_address_is_found_in_its_file() -> None:
    """The place counts from the beginning of the file, not of the mapping, and names may have blanks."""
    assert place_of(0x7F0000001234, MAPS) == ProbePlace(path="/lib/a library.so.0", offset=0x1234)


@pytest.mark.parametrize("address", [0x7F0000005000, 0x7F0000006010, 0x7F0000007000, 1])
def test_an_address_of_no_file_is_refused(address: int) -> None:
    """Anonymous memory, the kernel's own pages and unmapped addresses can hold no probe."""
    with pytest.raises(MeasurementError, match=rf"address {address:#x} is mapped from no file"):
        place_of(address, MAPS)


def test_probes_see_the_phases_that_the_driver_times(small_plan: LlamaPlan) -> None:
    """Same phases in the same order, none longer by a millisecond; skipped where probes are not allowed."""
    if not PMU_TYPE.exists():
        pytest.skip("this kernel has no PMU for uprobes")
    plan = replace(small_plan, n_repetitions=2)
    try:
        payload = run_worker(UprobePlan(llama=plan))
    except MeasurementError as error:
        if "CAP_PERFMON" not in str(error):
            raise
        pytest.skip(str(error))
    record = EngineRecord.from_plain(payload["engine"])
    trace = CallTrace.from_plain(payload["calls"])
    pattern = CallPattern(
        n_prompt=plan.n_prompt, n_gen=plan.n_gen, n_batch=plan.n_batch, n_repetitions=2, with_warm_up=False
    )
    own = [span for span in record.spans if span.phase is not Phase.LOAD]
    seen = call_spans(trace, pattern)
    assert [(span.phase, span.token) for span in seen] == [(span.phase, span.token) for span in own]
    assert all(mine.duration_ns + 10**6 > other.duration_ns > 0 for mine, other in zip(own, seen, strict=True))

"""Live records as lines."""

from __future__ import annotations

import pytest

from perfsuite.errors import MeasurementError
from perfsuite.records.live import (
    LiveLoss,
    LivePhase,
    from_line,
    to_line,
)


def test_a_line_is_flat_and_names_its_fields() -> None:
    """The schema of a phase is what the document says; an unknown kind is None, an unknown field ignored."""
    record = LivePhase(phase="decode", repetition=0, token=64, n_tokens=1, start_ns=10, end_ns=25)
    assert to_line(record) == (
        '{"kind":"phase","phase":"decode","repetition":0,"token":64,"n_tokens":1,"start_ns":10,"end_ns":25}'
    )
    assert from_line('{"kind":"energy","end_ns":1}') is None
    assert from_line('{"kind":"loss","where":"queue","n_records":1,"why":"full"}') == LiveLoss(
        where="queue", n_records=1
    )


@pytest.mark.parametrize("line", ["{", "7", '{"where":"queue"}', '{"kind":"loss"}', b"\xff\xfe", '{"kind":[]}'])
def test_what_is_no_record_is_one_line(line: str | bytes) -> None:
    with pytest.raises(MeasurementError, match="not a record of this suite"):
        from_line(line)

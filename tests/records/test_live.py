"""Live records as lines."""

from __future__ import annotations

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

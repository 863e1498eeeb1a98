"""What baselines need of a run."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from perfsuite.errors import BaselineError
from perfsuite.records.outcome import Judgement, Outcome
from perfsuite.records.run_file import RunFile
from perfsuite.records.run_origin import BoardName, RunOrigin
from perfsuite.report.run_writer import write_run
from perfsuite.verdict.recorded_run import read_run, require_reference

DECODE = Judgement(
    case_id="phase/a-q8_0/siso/decode",
    kind="phase",
    samples_ns=(5, 6, 7),
    measured_ns=6,
    floor_ns=1,
    expected_ns=4,
    limit_ns=40,
    baseline_ns=None,
    change_ratio=None,
    outcome=Outcome.SLOW,
    reason="why",
)
RUN = RunFile(
    suite_version="1",
    started_at="2025-01-01T00:00:00+00:00",
    device="host",
    workload="a-q8_0/siso",
    subjects={},
    fingerprints={"llama": {"soc": "A"}, "own": {"soc": "B"}},
    ceilings=None,
    durations_s={},
    operator_share_ratio={},
    n_discarded_replicates={},
    peak_rss_bytes=None,
    judgements=(
        DECODE,
        replace(DECODE, case_id="mine/x", kind="mine"),
        replace(DECODE, case_id="phase/a-q8_0/siso/copy", outcome=Outcome.INVALID),
    ),
    sentinels_ns={"llama": {"memory": (1, 2)}},
    covariates={"llama": {"load_average": 0.5, "cpu_mhz": None}},
)


def test_what_a_run_writes_is_read(tmp_path: Path) -> None:
    """Groups come with their samples, sentinels and covariates; what was not measured properly is left out."""
    run = read_run(write_run(RUN, tmp_path))
    assert (run.device, run.recorded_at, run.is_injected) == ("host", RUN.started_at, False)
    assert run.rejected == {"phase/a-q8_0/siso/copy": "invalid"}
    llama, own = run.groups
    assert (llama.name, own.name, llama.fingerprint, own.fingerprint) == ("a-q8_0", "own", {"soc": "A"}, {"soc": "B"})
    assert (llama.session.samples_ns, llama.session.sentinels_ns) == ({DECODE.case_id: (5, 6, 7)}, {"memory": (1, 2)})
    assert llama.session.covariates == {"load_average": 0.5, "cpu_mhz": None}
    assert own.session.samples_ns == {"mine/x": (5, 6, 7)}
    assert own.session.sentinels_ns == own.session.covariates == {}


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"is_interrupted": True}, "was interrupted, and is no reference"),
        ({"is_injected": True}, "slowed down on purpose"),
        ({"against": "/lib/old"}, "in pairs against /lib/old, and is no reference; run without --against"),
    ],
)
def test_what_is_no_reference_is_refused(tmp_path: Path, changes: dict[str, Any], told: str) -> None:
    require_reference(read_run(write_run(RUN, tmp_path)))
    run = read_run(write_run(replace(RUN, **changes), tmp_path))
    assert run.is_injected is ("is_injected" in changes)
    with pytest.raises(BaselineError, match=told):
        require_reference(run)


def test_cases_without_a_fingerprint_are_refused(tmp_path: Path) -> None:
    with pytest.raises(BaselineError, match="has cases of 'own' and no fingerprint of that; run again"):
        read_run(write_run(replace(RUN, fingerprints={"llama": {"soc": "A"}}), tmp_path))


def test_a_session_over_a_link_is_of_its_board(tmp_path: Path) -> None:
    """What ran on the machine itself, or was written before that was reported, is of no board."""
    for board, kept_by in (
        (BoardName(identity="0123456789abcdef", hostname="shelf-2", is_linked=True), "0123456789abcdef"),
        (BoardName(identity="0123456789abcdef", hostname="shelf-2"), None),
        (None, None),
    ):
        path = write_run(replace(RUN, origin=RunOrigin(board=board)), tmp_path)
        assert read_run(path).board == kept_by
    plain = json.loads(path.read_text())
    path.write_text(json.dumps({**plain, "board": {"identity": "0123456789abcdef", "hostname": "shelf-2"}}))
    assert read_run(path).board is None

"""``perfsuite trace check``: whether eBPF can be used."""

from __future__ import annotations

from pathlib import Path

import pytest

from perfsuite.cli import main
from tests.command_streams import Streams


def test_what_is_missing_is_told(monkeypatch: pytest.MonkeyPatch, capsys: Streams) -> None:
    """One thing, and an exit code that a script can use."""
    monkeypatch.setattr(
        "perfsuite.experiments.tracing.command_check.ebpf_obstacle", lambda cache_dir: "no BTF: it is not there"
    )
    assert main(["trace", "check"]) == 1
    assert capsys.readouterr().out == "eBPF cannot be used: no BTF: it is not there\n"


def test_which_helper_is_used_is_told(monkeypatch: pytest.MonkeyPatch, capsys: Streams) -> None:
    """The installed one, or root's own; and the names that --counters takes."""
    monkeypatch.setattr("perfsuite.experiments.tracing.command_check.ebpf_obstacle", lambda cache_dir: None)
    monkeypatch.setattr(
        "perfsuite.experiments.tracing.command_check.find_helper", lambda cache_dir: Path("/helpers/perfsuite-bpf")
    )
    assert main(["trace", "check"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("eBPF can be used, by /helpers/perfsuite-bpf\n")
    assert "page-faults-major " in out

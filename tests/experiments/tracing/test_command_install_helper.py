"""``sudo perfsuite trace install-helper``."""

from __future__ import annotations

from pathlib import Path

import pytest

from perfsuite.cli import main
from perfsuite.errors import MeasurementError
from perfsuite.measure.ebpf_install import InstalledHelper
from tests.command_streams import Refused, Streams


def test_where_it_was_put_is_told(monkeypatch: pytest.MonkeyPatch, capsys: Streams) -> None:
    """What else root should know comes first."""
    installed = InstalledHelper(path=Path("/helpers/perfsuite-bpf"), sources=Path("/src"), notes=("look at /src",))
    monkeypatch.setattr("perfsuite.experiments.tracing.command_install_helper.install_helper", lambda: installed)
    assert main(["trace", "install-helper"]) == 0
    out = capsys.readouterr().out
    assert out == "note: look at /src\ninstalled /helpers/perfsuite-bpf, with CAP_BPF and CAP_PERFMON\n"


def test_without_root_it_is_one_line(monkeypatch: pytest.MonkeyPatch, refused: Refused) -> None:
    """The command to run is in it."""

    def install() -> InstalledHelper:
        raise MeasurementError("installing perfsuite-bpf takes root; run sudo perfsuite trace install-helper")

    monkeypatch.setattr("perfsuite.experiments.tracing.command_install_helper.install_helper", install)
    assert "run sudo perfsuite trace install-helper" in refused(["trace", "install-helper"])

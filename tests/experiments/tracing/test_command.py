"""``perfsuite trace``: whom to follow, and what is stated of a wrong choice."""

from __future__ import annotations

from pathlib import Path
from unittest.mock import Mock

import pytest

from perfsuite.cli import main
from perfsuite.errors import MeasurementError
from perfsuite.measure.ebpf_helper import InstalledHelper
from tests.command_streams import Refused, Streams

#: Where some words behind ``trace`` are understood.
_WORDS = "perfsuite.experiments.tracing.command_ebpf"


def test_a_helper_is_installed_or_needs_root(
    monkeypatch: pytest.MonkeyPatch, capsys: Streams, refused: Refused
) -> None:
    installed = InstalledHelper(path=Path("/helpers/perfsuite-bpf"), sources=Path("/src"), notes=("look at /src",))
    monkeypatch.setattr(f"{_WORDS}.install_helper", lambda: installed)
    assert main(["trace", "install-helper"]) == 0
    out = capsys.readouterr().out
    assert out == "note: look at /src\ninstalled /helpers/perfsuite-bpf, with CAP_BPF and CAP_PERFMON\n"
    told = "installing perfsuite-bpf needs root; run sudo perfsuite trace install-helper"
    monkeypatch.setattr(f"{_WORDS}.install_helper", Mock(side_effect=MeasurementError(told)))
    assert told in refused(["trace", "install-helper"])


@pytest.mark.parametrize(
    ("obstacle", "exit_code", "told"),
    [
        ("no BTF: it is not there", 1, ["eBPF cannot be used: no BTF: it is not there\n"]),
        (None, 0, ["eBPF can be used, by /helpers/perfsuite-bpf\n", "page-faults-major "]),
    ],
    ids=["missing", "usable"],
)
def test_what_is_missing_or_used_is_told(
    obstacle: str | None, exit_code: int, told: list[str], monkeypatch: pytest.MonkeyPatch, capsys: Streams
) -> None:
    monkeypatch.setattr(f"{_WORDS}.ebpf_obstacle", lambda cache_dir: obstacle)
    monkeypatch.setattr(f"{_WORDS}.find_helper", lambda cache_dir: Path("/helpers/perfsuite-bpf"))
    assert main(["trace", "check"]) == exit_code
    out = capsys.readouterr().out
    assert out.startswith(told[0])
    assert all(each in out for each in told)


_OWN = ("--model", "smollm2-135m-q8_0")
_IDLE = ": nothing would be done with it; expected "


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "nobody to follow; expected -- COMMAND, --pid N or --model NAME"),
        (["--pid", "1", "--model", "smollm2-135m-q8_0"], "--pid and --model; expected one of them"),
        (["--recorder", "callback", "--", "ls"], "--recorder=callback: is of the suite's own runs; expected --model"),
        (["--trace", "operators", "--", "ls"], "--trace=operators: 'operators' is not a level; there are token, graph"),
        (["--memory-limit", "900M", "--pid", "1"], f"--memory-limit{_IDLE}--model beside it"),
        ([*_OWN, "--trace", "operator", "--recorder", "callback"], f"--trace{_IDLE}the recorder ebpf beside it"),
    ],
)
def test_what_cannot_be_followed_is_one_line(arguments: list[str], message: str, refused: Refused) -> None:
    assert message in refused(["trace", *arguments])


@pytest.mark.parametrize("words", [["--", "no-such-program"], ["--pid", "1"]])
def test_what_a_board_cannot_do_is_said_first(words: list[str], refused: Refused) -> None:
    """A program of this machine is not followed on a board, whatever else is missing here."""
    told = "perfsuite: error: --device=rubikpi: is reached by ssh rubikpi, and a command or --pid is of this machine;"
    assert refused(["trace", "--device", "rubikpi", *words]).startswith(told)

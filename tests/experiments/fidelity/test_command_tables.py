"""What people are shown of fidelity."""

from __future__ import annotations

import pytest

from perfsuite.cli.answer import show
from perfsuite.experiments.fidelity.command_tables import fidelity_parts
from perfsuite.experiments.fidelity.scored_run import FidelityKind, FidelityRow, FidelityRun
from tests.command_streams import Streams
from tests.synthetic_fidelity import row

LONG, SHORT = "kernel/add/count8/f32", "kernel/add/count2/f32"


def shown(capsys: pytest.CaptureFixture[str], *rows: FidelityRow, problems: tuple[str, ...] = ()) -> str:
    """Return what is printed of rows."""
    conditions = {"governor": "none", "clocks": "not locked"}
    run = FidelityRun(device="host", platform="A device", conditions=conditions, rows=rows, problems=problems)
    show(*fidelity_parts(run))
    return capsys.readouterr().out


def line(out: str, begin: str) -> list[str]:
    """Return the words of the line that begins so."""
    (found,) = [each for each in out.splitlines() if each.startswith(begin)]
    return found.split()


def test_a_phase_has_both_times_and_its_error(capsys: Streams) -> None:
    """Below 100 µs the error is in whole ns, above as people read it."""
    out = shown(capsys, row("decode", 1_001_000, 10**6, n=72), row("copy", 10_455, 10_000))
    assert line(out, "decode")[:8] == ["decode", "72", "1.00", "ms", "1.00", "ms", "interposed", "+1.00"]
    assert line(out, "decode")[-3:] == ["99.90", "%", "1.000"]
    assert "+455 ns" in out


def test_operators_have_a_table_of_their_own(capsys: Streams) -> None:
    """They are no phases, and have no limits, of which nothing is said then."""
    out = shown(capsys, row("prefill", 99.0, 100.0, kind=FidelityKind.OPERATORS))
    assert "Operators, summed up" in out
    assert "Phases" not in out
    assert "limits:" not in out


def test_long_and_short_kernels_are_told_apart(capsys: Streams) -> None:
    """Each group has its mean and its worst, and what lies below 10 µs is left out."""
    out = shown(
        capsys,
        row(LONG, 199_000, 200_000, interval_ns=(150_000, 250_000), beside_ns={"occupied_ns": 123_000}),
        row(f"{LONG}-b", 190_000, 200_000, note="500 duplicates of 1000"),
        row(SHORT, 19_000, 20_000),
        row(f"{SHORT}-b", 900, 1_000),
    )
    assert "Kernels of 100 µs and more" in out
    assert "Kernels of 10.0 µs to 100 µs" in out
    assert f"mean 97.25 %, worst 95.00 % ({LONG}-b) of 2" in out
    assert f"mean 95.00 %, worst 95.00 % ({SHORT}) of 1" in out
    assert f"  {LONG}-b: 500 duplicates of 1000" in out
    assert all(text in out for text in ("150 µs", "250 µs", "123 µs"))
    assert f"{SHORT}-b" not in out


def test_what_is_not_measured_is_told(capsys: Streams) -> None:
    """Parts of the run and single kernels, each with its reason."""
    out = shown(capsys, row(LONG, None, None, problem="no memory"), problems=("phases: disturbed",))
    assert "not measured: phases: disturbed" in out
    assert f"not measured: {LONG}: no memory" in out
    assert f"  fidelity/{LONG}: undecided: accurate to 91 %; no memory" in out


def test_the_conditions_are_told(capsys: Streams) -> None:
    """Device, OpenCL device, governor and clocks."""
    out = shown(capsys, row("decode", 10**6, 10**6))
    assert "device host; OpenCL A device; governor none; clocks not locked" in out
    assert "limits: 1 of 1 hold" in out


def test_what_falls_short_is_told_with_its_figures(capsys: Streams) -> None:
    """A limit that is not met is told with what was claimed and what was seen."""
    out = shown(capsys, row("decode", 1_100_000, 10**6))
    assert "  fidelity/phase/decode: not so: accurate to 99.9 %; 1.10 ms against 1.00 ms by interposed" in out

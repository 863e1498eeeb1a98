"""A roofline on the terminal."""

from __future__ import annotations

from dataclasses import replace

from perfsuite.cli.answer import show
from perfsuite.expectation.roofline.ceiling import Ceiling, Resource
from perfsuite.expectation.roofline.roofline_run import RowKind
from perfsuite.expectation.roofline.survey import Survey
from perfsuite.experiments.roofline.command_tables import roofline_parts
from tests.command_streams import Streams
from tests.synthetic_roofline import (
    bound_work,
    memory_record,
    part,
    prefill_row,
    roofline_run,
    row,
    subject,
    survey,
    work,
)


def test_ceilings_points_and_checks_are_shown(capsys: Streams) -> None:
    """The ceilings of the run's threads, a line for each point, and how many checks hold."""
    show(*roofline_parts(roofline_run(survey=survey(1, 2))))
    out = capsys.readouterr().out
    assert out.startswith("Ceilings of host")
    ceilings = out.partition("missing:")[0]
    assert "20.0 GB/s" in ceilings
    assert "400 GFLOP/s" in ceilings
    assert "200 GFLOP/s" not in ceilings
    assert "base: own-q8_0" in out
    (decode,) = (line for line in out.splitlines() if line.startswith("siso") and "decode" in line)
    assert decode.split()[2:4] == ["2", "20.0"]
    assert "50%" in decode
    assert "memory" in decode
    assert "checks: 3 of 3 hold" in out


def test_what_is_missing_says_why(capsys: Streams) -> None:
    """Each ceiling that is not there is one line, once however many threads lack it."""
    missing = Ceiling(processor="opencl", resource=Resource.COMPUTE, kind="fp32", missing="no platform has a device")
    show(*roofline_parts(roofline_run(survey=Survey(ceilings=(*survey(1, 2).ceilings, missing)))))
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("missing:")]
    assert lines == ["missing: cpu f16: the processor has none", "missing: opencl fp32: no platform has a device"]


def test_a_check_that_fails_is_told(capsys: Streams) -> None:
    """A point above its ceiling is named with its figures."""
    show(*roofline_parts(roofline_run(row(samples_ns=(10**7,) * 3))))
    out = capsys.readouterr().out
    assert "checks: 1 of 2 hold" in out
    assert "/decode/ceiling: not so: no point lies above its ceiling; 200 GFLOP/s at 2 FLOP/byte is 500%" in out


def test_findings_are_told_where_a_sweep_can_tell(capsys: Streams) -> None:
    """Without sweeps the paper is not mentioned; with depth agreement, contradiction and doubt are words."""
    show(*roofline_parts(roofline_run()))
    assert "RooflineBench" not in capsys.readouterr().out
    rows = [
        row(sweep="depth", setting=str(n), value=float(n), kind=RowKind.WHOLE_RUN, samples_ns=(round(4e8 / n),) * 3)
        for n in (2, 4, 8)
    ]
    show(*roofline_parts(roofline_run(*rows)))
    out = capsys.readouterr().out
    assert "'over depth, P of whole_run keeps rising': agrees;" in out
    assert "'over depth, operational intensity peaks at 3 to 5 layers': does not agree;" in out
    assert "P of decode" not in out


def test_the_range_of_experts_is_shown(capsys: Streams) -> None:
    """Where routing decides what is read, the intensity has both ends."""
    routed = part(least_stored_bytes=5 * 10**8, most_stored_bytes=2 * 10**9)
    show(*roofline_parts(roofline_run(row(work=work(routed)))))
    assert "2 (1 to 4)" in capsys.readouterr().out


def test_operators_that_take_the_most_time_are_shown(capsys: Streams) -> None:
    """Twelve of them, slowest first."""
    rows = [
        row(kind=RowKind.OPERATOR, role=f"decode/op{n:02}", work=bound_work(2), samples_ns=(n * 10**8,) * 3)
        for n in range(1, 15)
    ]
    show(*roofline_parts(roofline_run(prefill_row(), *rows)))
    out = capsys.readouterr().out
    assert "the 12 of 14 that take the most time" in out
    shown = [line.split()[0] for line in out.splitlines() if line.startswith("decode/op")]
    assert shown == [f"decode/op{n:02}" for n in range(14, 2, -1)]


def test_memory_is_shown(capsys: Streams) -> None:
    """Measured beside predicted; no VRAM is a dash and not 0."""
    show(*roofline_parts(roofline_run(memory=(memory_record(), replace(memory_record(), vram_bytes=2**30)))))
    lines = [line.split() for line in capsys.readouterr().out.splitlines() if line.startswith("own-q8_0")]
    assert [line[2:6] for line in lines] == [["1.56", "KiB", "1.46", "KiB"]] * 2
    assert [line[-1] for line in lines] == ["-", "GiB"]


def test_a_run_without_rows_is_shown(capsys: Streams) -> None:
    """Ceilings alone have no table of points, and no check."""
    show(*roofline_parts(replace(roofline_run(), rows=())))
    out = capsys.readouterr().out
    assert "Ceilings of host" in out
    assert "checks: 0 of 0 hold" in out


def test_points_of_llama_bench_are_shown(capsys: Streams) -> None:
    """They have a table of their own, without a spread."""
    run = roofline_run()
    show(*roofline_parts(run, [replace(run.point(run.rows[0]), case="llama-bench/own-q8_0/tg128")]))
    (line,) = (line for line in capsys.readouterr().out.splitlines() if line.startswith("own-q8_0/tg128"))
    assert " - " in line


def test_names_are_shown_as_they_are(capsys: Streams) -> None:
    """A device or a file whose name has brackets keeps them: they are no markup of the tables."""
    device = [replace(each, processor="A device [gfx90a]") for each in survey().ceilings]
    rows = [row(subject=subject(weights="own[/bold]"), setting="[red]siso")]
    show(*roofline_parts(roofline_run(*rows, survey=Survey(ceilings=(*survey().ceilings, *device)))))
    out = capsys.readouterr().out
    assert "\nOpenCL, A device [gfx90a]  2 " in out
    assert "base: own[/bold]" in out
    assert "\n[red]siso" in out

"""A roofline on the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from perfsuite.cli.answer import show
from perfsuite.expectation.roofline.ceiling import Ceiling, Resource, Survey
from perfsuite.expectation.roofline.point import Point
from perfsuite.expectation.roofline.roofline_run import RooflineRun, RowKind
from perfsuite.experiments.roofline.command_published import published_answer
from perfsuite.experiments.roofline.command_tables import draw_roofline, roofline_parts, roofline_plain
from tests.command_streams import Streams, printed
from tests.synthetic_roofline import (
    memory_record,
    prefill_row,
    roofline_run,
    row,
    subject,
    survey,
)


def test_people_read_a_table_and_sentences(capsys: Streams) -> None:
    """Each device is a row; each contradicted one a sentence with the rate, its need and the ceilings."""
    out = printed(published_answer(), capsys)
    for word in ("NVIDIA RTX 3090", "37.05", "ProfInfer", "RUBIK Pi 3", "2.64x", "1.34x"):
        assert word in out
    sentences = [line for line in out.splitlines() if "contradict" in line]
    assert [line.split(":")[0] for line in sentences] == ["Raspberry Pi 5", "Apple M1 Pro"]
    assert "qwen2.5-0.5b q8_0 at 20 tokens/s (decode, siso) needs at least 10.50 GB/s (measured 3.98" in sentences[0]
    assert "corrected 5.97, theoretical 17.10), 2.64 times the measured ceiling" in sentences[0]
    assert "which 16 of 20 rates contradict" in sentences[0]
    assert "Suspect: Apple M1 Pro qwen3-0.6b q4_k_m siso decode has 100 tokens/s, liso with its longer" in out
    assert (
        "200 of 219 rates are compared with a measured ceiling. Of 12 the need is not known: llama-2-7b int4, " in out
    )
    assert "Of 7 no measured ceiling is published: AMD Ryzen 9 HX 370 CPU, NVIDIA V100" in out


@pytest.mark.long
def test_a_run_is_drawn_by_what_it_has(tmp_path: Path) -> None:
    """Operators and memory where they were measured, and each sweep in the order in which they were."""
    run = roofline_run(
        row(), prefill_row(), row(kind=RowKind.OPERATOR, role="decode/ffn_up"), memory=(memory_record(),)
    )
    drawn = [path.name for path, title in draw_roofline(run, tmp_path / "seen.svg") if title]
    assert drawn == [f"seen-{name}.svg" for name in ("base", "operators", "memory", "bandwidth", "devices")]
    assert {path.name for path in tmp_path.iterdir()} == set(drawn)
    assert all(path.read_text().lstrip().startswith("<svg") for path in tmp_path.iterdir())
    rows = [
        row(sweep=sweep, setting=str(value), value=float(value)) for sweep in ("threads", "depth") for value in (1, 2)
    ]
    drawn = [path.name for path, _ in draw_roofline(roofline_run(*rows), tmp_path / "swept.svg")]
    assert drawn == ["swept-threads.svg", "swept-depth.svg", "swept-bandwidth.svg", "swept-devices.svg"]


MISSING = Ceiling(processor="opencl", resource=Resource.BANDWIDTH, kind="read", missing="no platform has a device")


def test_points_have_what_is_derived_of_them() -> None:
    """2 GFLOP over 1 GB in 100 ms lie at half of the 40 GFLOP/s that 20 GB/s let them attain."""
    run = roofline_run()
    point, _, benched = roofline_plain(run, [run.point(run.rows[0])])["points"]
    assert point["case"] == "roofline/base/own-q8_0/siso/t2/decode"
    assert (point["operational_intensity"], point["flops_per_s"]) == (2.0, 20e9)
    assert (point["attainable_flops_per_s"], point["attainable_ratio"]) == (40e9, 0.5)
    assert (point["regime"], point["ridge_point"]) == ("memory", 80.0)
    assert benched.items() < point.items()


def shown(capsys: Streams, run: RooflineRun, benched: Sequence[Point] = ()) -> list[str]:
    show(*roofline_parts(run, benched))
    return capsys.readouterr().out.splitlines()


def test_what_is_missing_or_fails_says_why(capsys: Streams) -> None:
    """Ceilings are those of the run's threads, each missing one once."""
    lines = shown(capsys, roofline_run(survey=Survey(ceilings=(*survey(1, 2).ceilings, MISSING))))
    told = [line for line in lines if line.startswith("missing:")]
    assert told == ["missing: cpu f16: the processor has none", "missing: opencl read: no platform has a device"]
    assert not any("200 GFLOP/s" in line for line in lines[: lines.index(told[0])])
    lines = shown(capsys, roofline_run(row(samples_ns=(10**7,) * 3)))
    assert "checks: 1 of 2 hold" in lines
    assert "/decode/ceiling: not so: no point lies above its ceiling; 200 GFLOP/s at 2 FLOP/byte is 500%" in lines[-1]


def test_findings_are_told_where_a_sweep_can_tell(capsys: Streams) -> None:
    """With depth agreement and contradiction are words, and what another sweep tells is not mentioned."""
    rows = [
        row(sweep="depth", setting=str(n), value=float(n), kind=RowKind.WHOLE_RUN, samples_ns=(round(4e8 / n),) * 3)
        for n in (2, 4, 8)
    ]
    told = [line.partition(";")[0] for line in shown(capsys, roofline_run(*rows)) if line.startswith("RooflineBench")]
    assert told == [
        "RooflineBench, 'over depth, operational intensity peaks at 3 to 5 layers': does not agree",
        "RooflineBench, 'over depth, P of whole_run keeps rising': agrees",
    ]


def test_names_are_shown_as_they_are(capsys: Streams) -> None:
    """A device or a file whose name has brackets keeps them: they are no markup of the tables."""
    device = [replace(each, processor="A device [gfx90a]") for each in survey().ceilings]
    rows = [row(subject=subject(weights="own[/bold]"), setting="[red]siso")]
    lines = shown(capsys, roofline_run(*rows, survey=Survey(ceilings=(*survey().ceilings, *device))))
    for told in ("OpenCL, A device [gfx90a]  2 ", "base: own[/bold]", "[red]siso"):
        assert any(line.startswith(told) for line in lines)

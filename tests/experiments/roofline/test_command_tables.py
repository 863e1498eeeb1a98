"""A roofline on the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from perfsuite.cli.answer import Answer, show
from perfsuite.expectation.roofline.ceiling import Ceiling, Resource
from perfsuite.expectation.roofline.point import Point
from perfsuite.expectation.roofline.roofline_run import RooflineRun, RowKind
from perfsuite.expectation.roofline.survey import Survey
from perfsuite.experiments.roofline.command_published import published_answer
from perfsuite.experiments.roofline.command_tables import draw_roofline, roofline_parts, roofline_plain
from perfsuite.experiments.roofline.paper_findings import paper_findings
from tests.command_streams import Streams, plain_of, printed
from tests.synthetic_roofline import (
    bound_work,
    independent_rate,
    memory_record,
    part,
    prefill_row,
    roofline_run,
    row,
    subject,
    survey,
    work,
)


def test_what_is_published_is_told_for_programs() -> None:
    """Contradicted, held without contradiction, and never held are three things; each has its ceilings with sources."""
    plain = plain_of(published_answer())
    devices = {each["name"]: each for each in plain["devices"]}
    found = {name: (each["is_contradicted"], each["contradicted_by_ratio"]) for name, each in devices.items()}
    assert found["Raspberry Pi 5"] == (True, pytest.approx(2.64, abs=0.01))
    assert found["Apple M1 Pro"] == (True, pytest.approx(1.34, abs=0.01))
    assert found["Jetson Orin Nano Super 8G"] == found["NVIDIA RTX 3070 Ti Laptop"] == (False, None)
    assert found["NVIDIA RTX 3090"] == found["NVIDIA V100"] == (None, None)
    assert devices["NVIDIA V100"]["ridge_point"] is None
    pi = devices["Raspberry Pi 5"]
    assert (pi["device_class"], pi["contradicted_resource"]) == ("CPU", "bandwidth")
    assert pi["corrected_bandwidth_bytes_per_s"] == pytest.approx(5.97e9)
    assert (pi["ridge_point"], pi["measured_ridge_point"]) == pytest.approx((8.98, 78.56 / 3.98), abs=0.01)
    assert set(pi["sources"]) <= set(pi)
    prefill, decode = (
        next(each for each in plain["rates"] if (each["device"], each["phase"]) == ("Raspberry Pi 5", phase))
        for phase in ("prefill", "decode")
    )
    assert decode["needed_bytes_per_s"] / 3.98e9 == pytest.approx(decode["excess_ratios"]["measured"])
    assert set(decode["excess_ratios"]) == {"measured", "corrected", "theoretical"}
    assert prefill["needed_flops_per_s"] / 78.56e9 == pytest.approx(prefill["excess_ratios"]["measured_fp32"])
    (missing,) = (each for each in plain["rates"] if each["architecture"] == "qwen2-0.5b")
    assert missing["needed_bytes_per_s"] is None
    assert "not in the catalogue" in missing["missing"]
    (pair,) = plain["suspects"]
    shorter, longer = (f"Apple M1 Pro qwen3-0.6b q4_k_m {scenario} decode" for scenario in ("siso", "liso"))
    assert pair == {"shorter": shorter, "longer": longer, "ratio": 1.6}


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


def test_a_run_is_drawn_by_what_it_has(tmp_path: Path) -> None:
    """Operators and memory where they were measured, and each sweep in the order in which they were."""
    run = roofline_run(
        row(), prefill_row(), row(kind=RowKind.OPERATOR, role="decode/ffn_up"), memory=(memory_record(),)
    )
    drawn = [path.name for path, title in draw_roofline(run, tmp_path / "seen.svg") if title]
    assert drawn == [f"seen-{name}.svg" for name in ("base", "operators", "memory", "bandwidth", "devices")]
    assert {path.name for path in tmp_path.iterdir()} == set(drawn)
    assert all(path.read_text().lstrip().startswith("<?xml") for path in tmp_path.iterdir())
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
    assert point["relative_inference_potential"] == pytest.approx(2.488, abs=0.001)
    assert (point["kind"], point["role"], point["samples_ns"]) == ("decode", None, [99000000, 100000000, 102000000])
    assert benched.items() < point.items()
    assert "samples_ns" not in benched
    operator, _ = roofline_plain(roofline_run(row(kind=RowKind.OPERATOR, role="decode/ffn_up"), prefill_row()))[
        "points"
    ]
    assert operator["case"].endswith("/t2/decode/ffn_up")
    assert operator["role"] == "decode/ffn_up"


def test_programs_read_ceilings_memory_checks_and_findings() -> None:
    """Each ceiling has its rate, or null and the reason; peaks are beside their prediction; findings need sweeps."""
    run = roofline_run(
        survey=Survey(ceilings=(*survey().ceilings, MISSING)), memory=(memory_record(),), bounds=(independent_rate(),)
    )
    plain = plain_of(Answer(parts=lambda: (), plain=lambda: roofline_plain(run)))
    assert plain["ridge_point"] == 20.0
    assert len(plain["ceilings"]) == len(run.survey.ceilings)
    assert (plain["ceilings"][0]["best_per_s"], plain["ceilings"][0]["missing"]) == (100e9, None)
    missing = [each for each in plain["ceilings"] if each["missing"]]
    assert [(each["processor"], each["kind"], each["best_per_s"], each["missing"]) for each in missing] == [
        ("cpu", "f16", None, "the processor has none"),
        ("opencl", "read", None, "no platform has a device"),
    ]
    (memory,) = plain["memory"]
    figures = [memory[f"{name}_bytes"] for name in ("peak_rss", "predicted_peak_rss", "unexplained")]
    assert figures == [1600, 1500, 100]
    checks = {each["name"]: each["holds"] for each in plain["checks"]}
    assert (checks["bound/cpu/read"], checks["bound/opencl/read"]) == (True, None)
    assert checks["memory/own-q8_0/siso"] is True
    assert [each["name"] for each in plain["findings"]] == [each.name for each in paper_findings(run)]
    assert {each["holds"] for each in plain["findings"]} == {None}
    assert all(each["evidence"] for each in plain["findings"])


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


def test_experts_memory_and_points_of_llama_bench_are_shown(capsys: Streams) -> None:
    """Where routing decides what is read, the intensity has both ends; no VRAM is a dash and not 0, no spread one."""
    routed = row(work=work(part(least_stored_bytes=5 * 10**8, most_stored_bytes=2 * 10**9)))
    run = roofline_run(routed, memory=(memory_record(), replace(memory_record(), vram_bytes=2**30)))
    lines = shown(capsys, run, [replace(run.point(routed), case="llama-bench/own-q8_0/tg128")])
    assert any("2 (1 to 4)" in line for line in lines)
    (bench,) = (line for line in lines if line.startswith("own-q8_0/tg128"))
    assert " - " in bench
    memory = [line.split() for line in lines if line.startswith("own-q8_0 ")]
    assert [line[2:6] for line in memory] == [["1.56", "KiB", "1.46", "KiB"]] * 2
    assert [line[-1] for line in memory] == ["-", "GiB"]


def test_operators_that_take_the_most_time_are_shown(capsys: Streams) -> None:
    rows = [
        row(kind=RowKind.OPERATOR, role=f"decode/op{n:02}", work=bound_work(2), samples_ns=(n * 10**8,) * 3)
        for n in range(1, 15)
    ]
    lines = shown(capsys, roofline_run(prefill_row(), *rows))
    assert any("the 12 of 14 that take the most time" in line for line in lines)
    told = [line.split()[0] for line in lines if line.startswith("decode/op")]
    assert told == [f"decode/op{n:02}" for n in range(14, 2, -1)]


def test_a_run_without_rows_is_shown(capsys: Streams) -> None:
    assert shown(capsys, replace(roofline_run(), rows=()))[-1] == "checks: 0 of 0 hold"


def test_names_are_shown_as_they_are(capsys: Streams) -> None:
    """A device or a file whose name has brackets keeps them: they are no markup of the tables."""
    device = [replace(each, processor="A device [gfx90a]") for each in survey().ceilings]
    rows = [row(subject=subject(weights="own[/bold]"), setting="[red]siso")]
    lines = shown(capsys, roofline_run(*rows, survey=Survey(ceilings=(*survey().ceilings, *device))))
    for told in ("OpenCL, A device [gfx90a]  2 ", "base: own[/bold]", "[red]siso"):
        assert any(line.startswith(told) for line in lines)

"""A roofline on the terminal."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from perfsuite.cli.answer import show
from perfsuite.expectation.roofline.ceiling import Ceiling, Resource
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


@pytest.fixture(scope="module")
def plain() -> dict[str, Any]:
    found: dict[str, Any] = plain_of(published_answer())
    return found


def test_ridge_points_and_suspects_for_programs(plain: dict[str, Any]) -> None:
    """RooflineBench has its printed ridge points, and one pair that contradicts itself; no roof has none."""
    points = {each["name"]: each["ridge_point"] for each in plain["devices"] if each["paper"] == "RooflineBench"}
    assert [f"{point:.2f}" for point in points.values()] == ["38.00", "37.05", "25.39", "20.48", "8.98"]
    others = {each["name"]: each["ridge_point"] for each in plain["devices"]}
    assert others["NVIDIA V100"] is None
    (pair,) = plain["suspects"]
    assert pair == {
        "shorter": "Apple M1 Pro qwen3-0.6b q4_k_m siso decode",
        "longer": "Apple M1 Pro qwen3-0.6b q4_k_m liso decode",
        "ratio": 1.6,
    }


def test_devices_are_whole_and_say_what_contradicts_them(plain: dict[str, Any]) -> None:
    """Contradicted, held without contradiction, and never held are three things; each has its ceilings with sources."""
    found = {each["name"]: (each["is_contradicted"], each["contradicted_by_ratio"]) for each in plain["devices"]}
    assert found["Raspberry Pi 5"] == (True, pytest.approx(2.64, abs=0.01))
    assert found["Apple M1 Pro"] == (True, pytest.approx(1.34, abs=0.01))
    assert found["Jetson Orin Nano Super 8G"] == found["NVIDIA RTX 3070 Ti Laptop"] == (False, None)
    assert found["NVIDIA RTX 3090"] == found["NVIDIA V100"] == (None, None)
    pi = next(each for each in plain["devices"] if each["name"] == "Raspberry Pi 5")
    assert pi["device_class"] == "CPU"
    assert pi["corrected_bandwidth_bytes_per_s"] == pytest.approx(5.97e9)
    assert pi["measured_ridge_point"] == pytest.approx(78.56 / 3.98)
    assert pi["contradicted_resource"] == "bandwidth"
    assert set(pi["sources"]) <= set(pi)


def test_rates_say_what_they_need(plain: dict[str, Any]) -> None:
    decode = next(each for each in plain["rates"] if each["device"] == "Raspberry Pi 5" and each["phase"] == "decode")
    assert decode["needed_bytes_per_s"] / 3.98e9 == pytest.approx(decode["excess_ratios"]["measured"])
    assert set(decode["excess_ratios"]) == {"measured", "corrected", "theoretical"}
    prefill = next(each for each in plain["rates"] if each["device"] == "Raspberry Pi 5" and each["phase"] == "prefill")
    assert prefill["needed_flops_per_s"] / 78.56e9 == pytest.approx(prefill["excess_ratios"]["measured_fp32"])
    (missing,) = (each for each in plain["rates"] if each["architecture"] == "qwen2-0.5b")
    assert missing["needed_bytes_per_s"] is None
    assert "not in the catalogue" in missing["missing"]


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


KEYS = {
    *("case", "operational_intensity", "flops_per_s", "attainable_flops_per_s", "regime"),
    "relative_inference_potential",
}

MISSING = Ceiling(processor="opencl", resource=Resource.BANDWIDTH, kind="read", missing="no platform has a device")


def programs_read(run: RooflineRun) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(json.dumps(roofline_plain(run), allow_nan=False))
    return found


def test_points_have_the_promised_keys() -> None:
    """2 GFLOP over 1 GB in 100 ms lie at half of the 40 GFLOP/s that 20 GB/s let them attain."""
    (point, _) = programs_read(roofline_run())["points"]
    assert set(point) >= KEYS
    assert point["case"] == "roofline/base/own-q8_0/siso/t2/decode"
    assert (point["operational_intensity"], point["flops_per_s"]) == (2.0, 20e9)
    assert (point["attainable_flops_per_s"], point["attainable_ratio"]) == (40e9, 0.5)
    assert (point["regime"], point["ridge_point"]) == ("memory", 80.0)
    assert point["relative_inference_potential"] == pytest.approx(2.488, abs=0.001)
    assert (point["kind"], point["role"], point["samples_ns"]) == ("decode", None, [99000000, 100000000, 102000000])


def test_programs_read_ceilings_memory_and_checks() -> None:
    """Each ceiling has its rate, or null and the reason; peaks are beside their prediction."""
    run = roofline_run(survey=Survey(ceilings=(*survey().ceilings, MISSING)))
    plain = programs_read(run)
    assert plain["ridge_point"] == 20.0
    assert len(plain["ceilings"]) == len(run.survey.ceilings)
    assert plain["ceilings"][0]["best_per_s"] == 100e9
    assert plain["ceilings"][0]["missing"] is None
    missing = [each for each in plain["ceilings"] if each["missing"]]
    assert [(each["processor"], each["kind"], each["best_per_s"], each["missing"]) for each in missing] == [
        ("cpu", "f16", None, "the processor has none"),
        ("opencl", "read", None, "no platform has a device"),
    ]
    plain = programs_read(roofline_run(memory=(memory_record(),), bounds=(independent_rate(),)))
    (memory,) = plain["memory"]
    figures = [memory[f"{name}_bytes"] for name in ("peak_rss", "predicted_peak_rss", "unexplained")]
    assert figures == [1600, 1500, 100]
    checks = {each["name"]: each["holds"] for each in plain["checks"]}
    assert (checks["bound/cpu/read"], checks["bound/opencl/read"]) == (True, None)
    assert checks["memory/own-q8_0/siso"] is True


def test_findings_roles_and_points_of_llama_bench_are_there() -> None:
    """Without sweeps each of the paper's findings is null with its reason; llama-bench has no samples of ours."""
    findings = programs_read(roofline_run())["findings"]
    assert len(findings) == len(paper_findings(roofline_run()))
    assert {each["holds"] for each in findings} == {None}
    assert all(each["evidence"] for each in findings)
    plain = programs_read(roofline_run(row(kind=RowKind.OPERATOR, role="decode/ffn_up"), prefill_row()))
    assert plain["points"][0]["case"].endswith("/t2/decode/ffn_up")
    assert plain["points"][0]["role"] == "decode/ffn_up"
    run = roofline_run()
    plain = roofline_plain(run, [run.point(run.rows[0])])
    assert len(plain["points"]) == 3
    assert set(plain["points"][2]) >= KEYS
    assert "samples_ns" not in plain["points"][2]


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


def test_what_is_missing_or_fails_says_why(capsys: Streams) -> None:
    missing = Ceiling(processor="opencl", resource=Resource.COMPUTE, kind="fp32", missing="no platform has a device")
    show(*roofline_parts(roofline_run(survey=Survey(ceilings=(*survey(1, 2).ceilings, missing)))))
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("missing:")]
    assert lines == ["missing: cpu f16: the processor has none", "missing: opencl fp32: no platform has a device"]
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


def test_experts_and_memory_are_shown(capsys: Streams) -> None:
    """Where routing decides what is read, the intensity has both ends; no VRAM is a dash and not 0."""
    routed = part(least_stored_bytes=5 * 10**8, most_stored_bytes=2 * 10**9)
    show(*roofline_parts(roofline_run(row(work=work(routed)))))
    assert "2 (1 to 4)" in capsys.readouterr().out
    show(*roofline_parts(roofline_run(memory=(memory_record(), replace(memory_record(), vram_bytes=2**30)))))
    lines = [line.split() for line in capsys.readouterr().out.splitlines() if line.startswith("own-q8_0")]
    assert [line[2:6] for line in lines] == [["1.56", "KiB", "1.46", "KiB"]] * 2
    assert [line[-1] for line in lines] == ["-", "GiB"]


def test_operators_that_take_the_most_time_are_shown(capsys: Streams) -> None:
    rows = [
        row(kind=RowKind.OPERATOR, role=f"decode/op{n:02}", work=bound_work(2), samples_ns=(n * 10**8,) * 3)
        for n in range(1, 15)
    ]
    show(*roofline_parts(roofline_run(prefill_row(), *rows)))
    out = capsys.readouterr().out
    assert "the 12 of 14 that take the most time" in out
    shown = [line.split()[0] for line in out.splitlines() if line.startswith("decode/op")]
    assert shown == [f"decode/op{n:02}" for n in range(14, 2, -1)]


def test_a_run_without_rows_is_shown(capsys: Streams) -> None:
    show(*roofline_parts(replace(roofline_run(), rows=())))
    out = capsys.readouterr().out
    assert "Ceilings of host" in out
    assert "checks: 0 of 0 hold" in out
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

"""``perfsuite sweep``, on a simulated device."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from perfsuite.cli import main
from perfsuite.experiments.shapes.command_sweep import sweep_answer
from perfsuite.testing.shape_meters import SimulatedMeters
from perfsuite.workload.shapes.shape_case import Subject
from tests.command_streams import Refused, Streams, printed
from tests.experiments.shapes.conftest import FakeSubjects
from tests.synthetic_shape_sweep import bmm_setting, staircase, swept

QUIET = SimulatedMeters(time_ns=staircase(64), sigma=0.0)


def rows_of(out: str) -> list[str]:
    return [" ".join(row.split()) for row in out.splitlines()]


def test_the_best_and_the_worst_sizes_are_told(capsys: Streams) -> None:
    out = printed(sweep_answer(swept(bmm_setting(), QUIET)), capsys)
    assert "useful FLOP/s over the best of its whole tiles; lower quartile of 15 rounds\n" in out
    rows = rows_of(out)
    assert {"best 64 128 µs 128 µs to 128 µs 1.000 1.000", "worst 1 128 µs 128 µs to 128 µs 0.016 0.016"} < set(rows)
    assert sum(row.startswith(("best ", "worst ")) for row in rows) == 6
    assert "rank correlation with the model: 1.000 of efficiencies; 1.000 of times, where a straight line" in out


BMM = ["sweep", "bmm", "--n", "1:200", "--m", "1", "--k", "128", "--tile", "64"]


@pytest.fixture
def device(opened: FakeSubjects) -> FakeSubjects:
    opened.meters = SimulatedMeters(time_ns=staircase(64), sigma=0.003)
    return opened


def test_people_see_the_steps_and_the_correlation(device: FakeSubjects, capsys: Streams) -> None:
    assert main(BMM) == 0
    out, err = capsys.readouterr()
    assert out.startswith("bmm n1:200 b8 m1 k128 f32, tile 64, vector 8 by tiled on simulated device\n")
    assert "64 128 µs +100.0 % a multiple of 64" in rows_of(out)
    last = "Steps at 3 of 3 multiples of 64; efficiency follows the model with a rank correlation of 1.000\n"
    assert out.endswith(last)
    assert out.count("\n") < 30
    assert "sweep: measuring (0/3000)\n" in err


def test_every_size_has_its_rounds(device: FakeSubjects) -> None:
    assert main([*BMM, "--rounds", "3"]) == 0
    assert list(device.opened) == [Subject.TILED]
    assert device.meters.n_samples == {f"shape/tiled/bmm/b8-m1-n{n}-k128/f32/tile64-vector8": 3 for n in range(1, 201)}
    assert device.meters.n_calls["verify"] == 200
    assert main([*BMM, "--no-verify", "--rounds", "1"]) == 0
    assert device.meters.n_calls["verify"] == 200


def test_files_are_written_beside_the_table(device: FakeSubjects, capsys: Streams, tmp_path: Path) -> None:
    files = ["--output", f"{tmp_path}/s.json", "--csv", f"{tmp_path}/s.csv", "--plot", f"{tmp_path}/s.svg"]
    assert main([*BMM, *files]) == 0
    out, err = capsys.readouterr()
    assert "Steps at 3 of 3" in out
    assert "s.svg: drawn" in err
    points = json.loads((tmp_path / "s.json").read_text())["points"]
    assert (tmp_path / "s.csv").read_text().count("\n") == 1 + len(points) == 201
    assert "<svg" in (tmp_path / "s.svg").read_text()


def test_what_crashes_or_is_wrong_is_told_and_the_others_are_measured(device: FakeSubjects, capsys: Streams) -> None:
    device.meters.crashes = lambda case: case.shape.of("n") == 100
    device.meters.wrong = lambda case: case.shape.of("n") in (3, 4)
    assert main([*BMM, "--json"]) == 1
    points = json.loads(capsys.readouterr().out)["points"]
    assert [(each["size"], "SIGSEGV" in each["missing"]) for each in points if each["missing"]] == [(100, True)]
    assert [each["size"] for each in points if each["time_ns"] is None] == [100]
    assert main(BMM) == 1
    out = capsys.readouterr().out
    assert re.search("Not measured is n = 100: .*n100-", " ".join(out.split()))
    assert "The output is wrong at n = 3, 4.\n" in out
    device.meters.crashes = None
    assert main(BMM) == 1


def test_ggml_is_measured_without_a_tile(device: FakeSubjects, capsys: Streams) -> None:
    assert main(["sweep", "gemv", "--subject", "ggml-cpu", "--type", "q8_0", "--n", "1:200", "--k", "64"]) == 0
    assert list(device.opened) == [Subject.GGML_CPU]
    assert "shape/ggml-cpu/gemv/n7-k64/q8_0" in device.meters.n_samples
    out = capsys.readouterr().out
    assert out.startswith("gemv n1:200 k64 q8_0 by ggml-cpu on ")
    assert "correlation" not in out
    assert "3 steps, 64 apart\n" in out


def test_the_model_alone_needs_no_device(device: FakeSubjects, capsys: Streams) -> None:
    assert main(["sweep", "bmm", "--n", "1:4096", "--tile", "64", "--expected-only"]) == 0
    assert capsys.readouterr().out == (
        "bmm n1:4096 b8 m1 k128 f32, tile 64, vector 8\n\nmean efficiency: 0.964 model\n"
        "The model alone: 0.964 of the padded work is of use\n"
    )
    assert main(["sweep", "bmm", "--n", "1:4096", "--expected-only", "--json"]) == 0
    plain = json.loads(capsys.readouterr().out)
    assert plain["expected_mean_efficiency_ratio"] == pytest.approx(0.964, abs=5e-4)
    assert plain["rank_correlation"] is None
    assert device.opened == {}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["gemm", "--subject", "ggml-cpu", "--expected-only"], "--expected-only: ggml-cpu names no tile"),
        (["gemv", "--m", "2"], "--m=2: gemv has no such size; it has --n, --k"),
        (["gemm", "--subject", "ggml-opencl", "--tile", "8"], "--tile=8: ggml-opencl cuts its work as it sees fit"),
        (["gemv", "--n", "1000:1000000:1000", "--no-verify"], "gemv/n1000000-k2048/f32: moves 8"),
    ],
)
def test_what_cannot_be_swept_is_refused(
    device: FakeSubjects, refused: Refused, arguments: list[str], message: str
) -> None:
    assert message in refused(["sweep", *arguments])
    assert device.opened == {}

"""``perfsuite policy``, with simulated devices."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from unittest.mock import Mock

import pytest

from perfsuite.cli import main
from perfsuite.errors import PolicyError
from perfsuite.experiments.shapes.command_policy_tables import (
    checks_answer,
    policy_answer,
)
from perfsuite.experiments.shapes.policy_check import Holding, PromiseCheck
from perfsuite.experiments.shapes.policy_promise import Claim, DrawnSizes
from perfsuite.experiments.shapes.policy_record import read_policy, write_policy
from perfsuite.testing.shape_meters import SimulatedMeters
from perfsuite.workload.shapes.shape_case import ShapeCase, Subject
from tests.command_streams import Refused, Streams, printed
from tests.experiments.shapes.conftest import FakeSubjects
from tests.synthetic_shape_policy import CPU, crossing_at, gain, policy_table, shape_policy


def checks() -> tuple[PromiseCheck, ...]:
    """One promise that holds, and one that does not, at a fitted size."""
    row = policy_table().rows[1]
    drawn = DrawnSizes(sizes=(64, 70), n_drawn=2, fitted_sizes=(64,))
    claim = Claim(row=row, over=CPU, promised=gain(1.5), drawn=drawn, pairs=())
    return (
        PromiseCheck(claim=claim, row=row, measured=gain(1.5), holding=Holding.HOLDS),
        PromiseCheck(claim=claim, row=row, measured=None, holding=Holding.FAILS, reason="computes [something] else"),
    )


def test_a_policy_is_told_by_rows_findings_and_what_was_left_out(capsys: Streams) -> None:
    out = printed(policy_answer(shape_policy()), capsys)
    assert "tiling of gemv, f16, k 512; default tile64-vector8, worst tile8-vector8" in out
    assert "cpu up to n 20, opencl above; interpolated between n 8 and 64" in out
    assert "measured at n 1, 8, 64, 512; beyond them nothing is known, and the default holds" in out
    assert "left out: tile16-vector4: gemv/n1-k512/f16: no room" in out
    assert "the default itself" in out


def test_checks_are_told_with_reasons_and_counted(capsys: Streams) -> None:
    """What was fitted there is stated to be; brackets of a reason are no markup."""
    words = " ".join(printed(checks_answer([(policy_table(), checks())]), capsys).split())
    assert "2 promises: holds 1, fails 1" in words
    assert "[something]" in words
    assert "n 21 to 512: measured at 64, 70; the choice was made at 64 as well" in words
    assert "1.5x (1.36 to 1.65)" in words
    assert "backend of gemv, f16, k 512: nothing to check" in printed(checks_answer([(policy_table(), ())]), capsys)


QUICK = ["--processes", "6", "--rounds", "2"]


def time_ns(case: ShapeCase) -> float:
    """Sides that cross at 40 rows; of tiles the smaller is the faster."""
    return 10_000.0 * case.tiling.tile if case.tiling is not None else crossing_at(40)(case)


@pytest.fixture(autouse=True)
def device(opened: FakeSubjects) -> None:
    opened.meters = SimulatedMeters(time_ns=time_ns, sigma=0.01)


def n_threads(opened: FakeSubjects) -> dict[Subject, int]:
    return {subject: told["n_threads"] for subject, told in opened.opened.items()}


def test_a_policy_is_measured_written_and_told(tmp_path: Path, capsys: Streams) -> None:
    path = tmp_path / "policy.json"
    assert main(["policy", "gemv", "--n", "1:144", "--k", "256", "-o", str(path), *QUICK]) == 0
    out, err = capsys.readouterr()
    tiling, backend = read_policy(path).tables
    assert str(tiling.default) == "tile8-vector4"
    assert [str(row.choice) for row in backend.rows] == ["cpu", "opencl"]
    assert 21 <= backend.rows[0].most <= 55
    assert "tile8-vector4 throughout, n 1 to 144" in out
    assert f"{path}: written" in err
    assert "policy: backend, 2 choices at 11 sizes, each compared with NumPy first" in err
    assert "policy: backend, rounds (18/18)" in err


def test_only_what_is_asked_for_is_opened(opened: FakeSubjects, capsys: Streams) -> None:
    arguments = ["policy", "gemv", "--n", "1,8,64", "--choose", "backend", "--threads", "3", "--json", *QUICK]
    assert main([*arguments, "--opencl-platform", "POCL"]) == 0
    plain = json.loads(capsys.readouterr().out)
    assert [table["decides"] for table in plain["tables"]] == ["backend"]
    assert (plain["n_threads"], plain["device"]) == (3, "host")
    assert n_threads(opened) == {Subject.GGML_CPU: 3, Subject.GGML_OPENCL: 3}
    assert {(told["platform"], told["log_dir"].exists()) for told in opened.opened.values()} == {("POCL", False)}


def test_a_check_measures_on_what_the_policy_was_measured_on(
    opened: FakeSubjects, tmp_path: Path, capsys: Streams
) -> None:
    path = tmp_path / "policy.json"
    sizes = ["--n", "1:377", "--choose", "backend", "--threads", "3"]
    assert main(["policy", "gemv", *sizes, "-o", str(path), *QUICK]) == 0
    opened.opened.clear()
    assert main(["policy", "check", str(path), *QUICK]) == 0
    assert n_threads(opened) == {Subject.GGML_CPU: 3, Subject.GGML_OPENCL: 3}
    assert "hold" in capsys.readouterr().out


def test_a_policy_that_lies_is_found_out(tmp_path: Path, capsys: Streams) -> None:
    path = tmp_path / "policy.json"
    assert main(["policy", "gemv", "--n", "1:377", "--choose", "tiling", "-o", str(path), *QUICK]) == 0
    policy = read_policy(path)
    (table,) = policy.tables
    rows = tuple(replace(row, gain_over_worst=gain(40.0)) for row in table.rows)
    write_policy(replace(policy, tables=(replace(table, rows=rows),)), path)
    capsys.readouterr()
    assert main(["policy", "check", str(path), "--json", *QUICK]) == 1
    (checked,) = json.loads(capsys.readouterr().out)["tables"]
    assert [each["holding"] for each in checked["checks"]] == ["fails"]
    assert checked["checks"][0]["reason"] == "the gain is smaller than promised"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["gemv", "--n", "x"], "'x' names no sizes"),
        (["gemv", "--processes", "1000000000000"], "--processes=1000000000000: expected 1 to 1024"),
        (["bmm", "--b", "1000", "--k", "100000"], "bmm/b1000-m1-n512-k100000/f16: moves"),
        (["gemv", "--type", "q8_0", "--k", "33"], "expected k in whole blocks of 32"),
    ],
)
def test_a_mistake_is_one_line(refused: Refused, arguments: list[str], message: str) -> None:
    assert message in refused(["policy", *arguments])


def test_the_file_is_there_for_a_reader_who_has_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was measured is written before it is printed, which may fail."""
    gone = Mock(side_effect=PolicyError("nobody reads"))
    monkeypatch.setattr("perfsuite.experiments.shapes.command_policy_tables.policy_answer", gone)
    path = tmp_path / "policy.json"
    assert main(["policy", "gemv", "--n", "1:8", "--choose", "backend", "-o", str(path), *QUICK]) == 2
    assert len(read_policy(path).tables) == 1

"""The comparison of the same work over ssh and locally."""

from __future__ import annotations

import json
import random
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from perfsuite.device.profile import find_profile
from perfsuite.device.reach import Reach
from perfsuite.errors import MeasurementError
from tools.link_sides import case_lines, compared_cases

from .loaded_tool import loaded_tool


@pytest.fixture(scope="module")
def tool() -> ModuleType:
    """Return the tool as a module."""
    return loaded_tool("compare_links")


def write_run(path: Path, **medians: int | None) -> Path:
    """Write what counts of a run."""
    cases = [
        {"id": f"phase/m/s/{name}", "measured_ns": ns, "outcome": "new" if ns else "invalid", "reason": "was hot"}
        for name, ns in medians.items()
    ]
    path.write_text(json.dumps({"cases": cases}))
    return path


def test_a_planted_difference_is_found(tool: ModuleType) -> None:
    """What takes 10 % longer over ssh is reported with an interval around it; what takes as long has 1 in its own."""
    chance = random.Random(5)
    local = [{"decode": chance.randint(9800, 10200), "copy": chance.randint(9800, 10200)} for _ in range(12)]
    ssh = [{"decode": round(each["decode"] * 1.1), "copy": chance.randint(9800, 10200)} for each in local]
    decode, copy = tool.differences(list(zip(ssh, local, strict=True)), 0.05)
    assert decode.ratio == pytest.approx(1.1, rel=1e-3)
    assert 1.09 < decode.lower_ratio <= decode.ratio <= decode.upper_ratio < 1.11
    assert copy.lower_ratio < 1 < copy.upper_ratio
    assert "1.1000" in tool.table([decode, copy]).splitlines()[1]


def test_too_few_pairs_have_no_interval(tool: ModuleType) -> None:
    """Two pairs give a ratio, and no bounds."""
    (found,) = tool.differences([({"decode": 11}, {"decode": 10})] * 2, 0.05)
    assert (found.lower_ratio, found.upper_ratio, found.pair_ratios) == (None, None, (1.1, 1.1))
    assert "too few pairs (2)" in tool.table([found])


def test_half_of_the_pairs_begin_with_ssh(tool: ModuleType) -> None:
    """The order is drawn, and neither side is first more often."""
    orders = [tool.drawn_orders(12, random.Random(seed)) for seed in range(9)]
    assert {sum(each) for each in orders} == {6}
    assert len({tuple(each) for each in orders}) > 1


def test_a_run_without_a_phase_is_no_side(tool: ModuleType, tmp_path: Path) -> None:
    """A run that failed, or has a phase that cannot be trusted, ends the comparison with the reason."""
    assert tool.medians_of(write_run(tmp_path / "good.json", decode=5), "") == {"decode": 5}
    with pytest.raises(tool.DisturbedError, match=r"phase/m/s/decode: was hot"):
        tool.medians_of(write_run(tmp_path / "bad.json", decode=None), "")
    with pytest.raises(MeasurementError, match=r"a run has failed: ERROR: no board"):
        tool.medians_of(tmp_path / "none.json", "more\nERROR: no board\n\n")


def test_a_disturbed_pair_is_run_again(
    tool: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Both sides of a pair that was disturbed are run once more, in its order; and not for ever."""
    asked: list[str] = []

    def run_of(_: object, folder: Path, *, is_local: bool) -> Any:
        asked.append(folder.name)
        if folder.name in bad:
            raise tool.DisturbedError("was hot")
        return tool.Run(medians={"decode": 10 + is_local}, verdicts={})

    monkeypatch.setattr(tool, "run_of", run_of)
    desk = tool.Desk(folder=tmp_path, options=(), home=None)
    bad = {"0.0-local"}
    assert [each.medians for each in tool.pair_of(desk, 0, True)] == [{"decode": 10}, {"decode": 11}]
    assert asked == ["0.0-ssh", "0.0-local", "0.1-ssh", "0.1-local"]
    assert "pair 1 is tried again: was hot" in capsys.readouterr().err
    bad = {f"0.{attempt}-ssh" for attempt in range(3)}
    with pytest.raises(MeasurementError, match="disturbed 3 times"):
        tool.pair_of(desk, 0, True)


def test_the_profile_holds_the_way(tool: ModuleType, tmp_path: Path) -> None:
    """What is not set of the way is left to OpenSSH's own configuration."""
    tool.write_profile(tmp_path, Reach(way="ssh", address="me@localhost"))
    assert find_profile("links", folders=[tmp_path / "devices"]).reach == Reach(way="ssh", address="me@localhost")


def test_what_one_side_alone_has_is_named() -> None:
    """A case that is missing on a side in one pair, and one whose usual verdict is another, are named by their ids."""
    ssh = {"phase/decode": "new", "kernel/mul": "new", "kernel/add": "new"}
    local = {**ssh, "phase/decode": "invalid"}
    found = compared_cases([(ssh, local), (ssh, local), ({**ssh, "kernel/rope": "new"}, local)])
    assert (found.n_cases, found.n_kernels, found.on_one_side) == (4, 3, ("kernel/rope",))
    assert (found.n_verdicts, found.n_same_verdicts) == (9, 6)
    assert found.other_verdicts == (("phase/decode", "new", "invalid"),)
    assert "1 on one side only" in case_lines(found)[0]
    assert "the same on both sides" in case_lines(compared_cases([(ssh, ssh)]))[0]

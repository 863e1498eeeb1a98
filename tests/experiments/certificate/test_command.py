"""``perfsuite certify``, with stored records in place of measurements."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from perfsuite.cli import main
from perfsuite.measure.board.local_board import LocalBoard
from perfsuite.measure.plan import TurnsPlan
from perfsuite.records.events import EngineRecord
from perfsuite.testing.workers import replace_turns
from tests.fake_device import stretched
from tests.synthetic_plans import QUIET


@dataclass
class Device:
    """Answers pairs from a stored record, the phases of the new side longer by what was asked for."""

    payload: dict[str, Any]
    n_pairs: int = 0
    plans: list[TurnsPlan] = field(default_factory=list)

    def run(self, plans: tuple[TurnsPlan, TurnsPlan], **_: object) -> tuple[dict[str, Any], dict[str, Any]]:
        self.n_pairs += 1
        self.plans += plans
        old, new = (self._answer(plan) for plan in plans)
        return old, new

    def _answer(self, plan: TurnsPlan) -> dict[str, Any]:
        noise = 1.0 + plan.llama.layout_seed % 97 * 1e-5
        engine = stretched(EngineRecord.from_plain(self.payload["engine"]), {}, noise).to_plain()
        engine["spans"] = [self._span(row, plan) for row in engine["spans"]]
        return {"engine": engine, "contention": QUIET, "peak_rss_bytes": 1}

    def _span(self, row: list[Any], plan: TurnsPlan) -> list[Any]:
        *head, start, end = row
        share = plan.llama.inject_phase_ratio if row[0] in plan.llama.inject_phases else 0.0
        return [*head, start, end + round((end - start) * share)]


@pytest.fixture
def device(stored_payload: dict[str, Any], monkeypatch: pytest.MonkeyPatch, own_cache: Path) -> Device:
    found = Device(stored_payload)
    replace_turns(monkeypatch, found.run)
    return found


def certify(*arguments: str) -> int:
    return main(["certify", "--model", "smollm2-135m-l2-q8_0", *arguments])


@pytest.mark.long
def test_false_alarms_and_power_are_told(device: Device, capsys: pytest.CaptureFixture[str]) -> None:
    """The same on both sides alarms never, and a slowdown of a fifth is found each time."""
    assert certify("--runs=2", "--inject=0.2", "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert told["false_alarms"]["k"] == 0
    assert told["false_alarms"]["n"] > 100
    assert (told["suite_false_alarms"]["k"], told["suite_false_alarms"]["n"]) == (0, 2)
    assert (told["power"]["0.2"]["k"], told["power"]["0.2"]["n"]) == (4, 4)
    assert told["power"]["0.2"]["by_phase"]["decode"]["k"] == 2
    decode = told["by_case"]["phase/smollm2-135m-l2-q8_0/siso/decode"]
    assert (decode["passes"]["k"], decode["false_alarms"]["k"]) == (2, 0)
    assert told["mean_pairs"] == 6
    assert {"prefill", "decode"} == set(told["smallest_effect_ratio"])
    assert "pytest-benchmark mean:5%" in {peer["name"] for peer in told["peers"]}


def test_a_second_run_resumes(device: Device, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """What is there is kept, whatever its file is called; only what is missing is measured."""
    state = f"--state={tmp_path / 'runs.json'}"
    certify("--runs=1", state)
    n_pairs = device.n_pairs
    certify("--runs=1", state)
    assert device.n_pairs == n_pairs
    certify("--runs=2", state)
    assert device.n_pairs == 2 * n_pairs
    capsys.readouterr()
    certify("--report-only", state)
    assert device.n_pairs == 2 * n_pairs
    assert "0 of 2" in capsys.readouterr().out


def test_an_operator_is_slowed_on_the_new_side(device: Device) -> None:
    certify("--runs=1", "--no-same", "--inject-operator=ffn_up=0.2")
    old, new = (plan.llama for plan in device.plans[:2])
    assert (old.inject_op, new.inject_op, new.inject_ratio) == (None, "ffn_up", 0.2)


def test_a_load_is_switched_on_half_way_and_off_again(
    device: Device, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It begins after half of the first look, with one process a thread, and ends."""
    asked: list[tuple[int, int]] = []
    monkeypatch.setattr(LocalBoard, "set_load", lambda _, n_processes: asked.append((device.n_pairs, n_processes)))
    certify("--runs=1", "--no-same", "--load", "--threads=3", "--json")
    (begin, *_, (_, last)) = asked
    assert (begin, last) == ((3, 3), 0)
    assert json.loads(capsys.readouterr().out)["loaded_false_alarms"]["k"] == 0

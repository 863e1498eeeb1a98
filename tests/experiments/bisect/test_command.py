"""``perfsuite bisect``, with stored records in place of measurements."""

from __future__ import annotations

import json
import random
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from perfsuite.cli import main
from perfsuite.errors import EngineError, MeasurementError, NativeBuildError
from perfsuite.measure.bundle.named_builds import Builder
from perfsuite.measure.engine import Engine, find_engine
from perfsuite.measure.plan import TurnsPlan
from perfsuite.testing.workers import replace_turns
from tests.command_streams import Refused
from tests.fake_device import CEILINGS
from tests.synthetic_plans import CONTENDED, QUIET


@dataclass
class Device:
    """Answers from a stored record: a build's phases are longer by what its name says."""

    payload: dict[str, Any]
    shares: dict[str, float] = field(default_factory=dict)
    contention: dict[str, float] = field(default_factory=lambda: QUIET)
    chance: random.Random = field(default_factory=lambda: random.Random(1))
    crashing: str = ""
    #: What was built, in order.
    built: list[str] = field(default_factory=list)

    def try_once(self, _: object, plan: Any, **__: object) -> dict[str, Any]:
        """Answer a build's first process, or a probe."""
        if getattr(plan, "engine_build_id", None) == self.crashing:
            raise MeasurementError("the worker was killed by SIGSEGV")
        return {**self.payload, "ceilings": CEILINGS}

    def run(self, plans: tuple[TurnsPlan, TurnsPlan], **_: object) -> tuple[dict[str, Any], dict[str, Any]]:
        old, new = (self._answer(plan) for plan in plans)
        return old, new

    def _answer(self, plan: TurnsPlan) -> dict[str, Any]:
        engine = dict(self.payload["engine"])
        share = self.shares[plan.llama.engine_build_id] + self.chance.gauss(0.0, 0.005)
        engine["spans"] = [[*head, start, end + round((end - start) * share)] for *head, start, end in engine["spans"]]
        return {"engine": engine, "contention": self.contention, "peak_rss_bytes": 1}


@pytest.fixture
def device(stored_payload: dict[str, Any], monkeypatch: pytest.MonkeyPatch, own_cache: Path) -> Device:
    """Eight builds, the fifth of which does not compile; decode is slower by a tenth from the seventh on."""
    found, engine = Device(stored_payload), find_engine()
    found.shares = {f"b{place}": 0.1 if place >= 6 else 0.0 for place in range(8)}

    def build(_: Builder, name: str) -> Engine:
        found.built.append(name)
        if name == "b4":
            raise NativeBuildError("b4: does not compile; see the log")
        if name not in found.shares:
            raise EngineError(f"{name}: is not a folder and no release")
        return replace(engine, build_id=name)

    monkeypatch.setattr(Builder, "engine", build)
    monkeypatch.setattr(Builder, "check", lambda *_: None)
    monkeypatch.setattr(Builder, "n_changes", lambda *_: 0)
    replace_turns(monkeypatch, found.run)
    monkeypatch.setattr(
        "perfsuite.measure.board.local_board.LocalBoard.run", lambda *given, **named: found.try_once(*given, **named)
    )
    return found


def bisect(*words: str) -> int:
    return main(["bisect", "--model", "smollm2-135m-l2-q8_0", *words])


BUILDS = tuple(f"b{place}" for place in range(8))


def test_the_build_that_changed_is_named(device: Device, capsys: pytest.CaptureFixture[str]) -> None:
    """Each build is made once, whatever it is compared with; one that crashes is left out, as one that is not built."""
    device.crashing = "b3"
    assert bisect(*BUILDS, "--json", "--quiet") == 0
    told = json.loads(capsys.readouterr().out)
    (change,) = told["changes"]
    assert (change["before"], change["after"], change["between"]) == ("b5", "b6", [])
    assert change["change_lower_ratio"] < 1.1 < change["change_upper_ratio"]
    assert change["wrong_ratio"] <= 0.05
    assert told["case"] == "phase/smollm2-135m-l2-q8_0/siso/decode"
    assert set(told["left_out"]) == {"b3", "b4"}
    assert len(device.built) == len(set(device.built))


def test_a_place_is_told_in_words_also_without_its_operators(
    device: Device, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Where the comparison that names them fails, what the search found is not lost."""
    busy = Mock(side_effect=MeasurementError("others use the processors"))
    monkeypatch.setattr("perfsuite.experiments.bisect.command.compare_plans", busy)
    device.shares["b5"] = 0.1
    assert bisect(*BUILDS) == 0
    told, remarks = capsys.readouterr()
    assert "b5: or one of b4 before it, which cannot be measured" in " ".join(told.split())
    assert "b4 is left out: b4: does not compile" in " ".join(remarks.split())
    assert "operators of b3 and b5 are not known: others use the processors" in " ".join(remarks.split())


def test_without_a_change_the_exit_code_says_so(device: Device, capsys: pytest.CaptureFixture[str]) -> None:
    """10, as where pytest could judge nothing; and 1 where the pairs did not decide."""
    assert bisect("b0", "b1", "b2", "--quiet") == 10
    assert "no change of 1.0% or more between b0 and b2" in capsys.readouterr().out
    device.shares["b1"] = 0.01
    assert bisect("b0", "b1", "--pairs=4", "--quiet") == 1
    assert "undecided between b0 and b1" in capsys.readouterr().out


def test_neither_what_physics_forbids_nor_competition_is_a_change(device: Device, refused: Refused) -> None:
    device.shares["b1"] = -0.9
    line = refused(["bisect", "--model", "smollm2-135m-l2-q8_0", "b0", "b1", "--quiet"])
    assert "b1: phase/smollm2-135m-l2-q8_0/siso/decode: " in line
    assert "is below the floor of " in line
    device.contention = CONTENDED
    line = refused(["bisect", "--model", "smollm2-135m-l2-q8_0", "b0", "b2", "--quiet"])
    assert "b0 and b2 cannot be compared: others took up to 80 % of the time" in line


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("b0", "b1", "--case=ffn_up"), "siso/decode/ffn_up; name more parts of one"),
        (("b0", "b4"), "b4: cannot be measured, and nothing can be said without it"),
    ],
)
def test_a_mistake_is_one_line(words: tuple[str, ...], told: str, device: Device, refused: Refused) -> None:
    assert told in refused(["bisect", "--model", "smollm2-135m-l2-q8_0", *words, "--quiet"])

"""``perfsuite bundle --plan`` reads its options before it compiles, and says how the build may be compared."""

from __future__ import annotations

from pathlib import Path

import pytest

from perfsuite.cli import bundle, main
from perfsuite.measure.bundle.making import Bundle
from perfsuite.records.bundle import read_manifest
from tests.command_streams import Refused, Streams

from .test_devices_setup import plant_bundle

_MAKE = "perfsuite.cli.bundle.make_bundle"


@pytest.mark.long_but_first
@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--device=rubikpi"], "--plan: nobody can ask rubikpi how many cores it has; say --threads=N"),
        (["--device=rubikpi", "--threads=2", "--scenario=nonsense"], "scenario 'nonsense' is unknown"),
        (["--threads=2"], "--plan: name the device behind '--', as --device=NAME"),
    ],
)
def test_what_cannot_be_planned_is_refused_before_anything_is_compiled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], told: str, refused: Refused
) -> None:
    monkeypatch.setattr(_MAKE, lambda *_: pytest.fail("something is compiled"))
    folder = tmp_path / "job"
    assert refused(["bundle", "--quiet", "--plan", "-o", str(folder), "--", *words]).startswith(
        f"perfsuite: error: {told}"
    )
    assert not folder.exists()


def test_what_a_bundle_needs_is_looked_for_before_anything_is_compiled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, refused: Refused
) -> None:
    """The checkout of the old side, and a place that holds nothing of somebody else's."""
    monkeypatch.setattr(_MAKE, lambda *_: pytest.fail("something is compiled"))
    (tmp_path / "mine").touch()
    made = ["bundle", "--quiet", "-o"]
    options = ["--plan", "--old-llama=nowhere", "--", "--device=rubikpi", "--threads=2"]
    assert "nowhere: is not a checkout" in refused([*made, str(tmp_path / "job"), *options])
    assert "is not a bundle; name another folder with -o" in refused([*made, str(tmp_path)])


def test_a_plan_says_what_its_times_are_compared_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Streams
) -> None:
    """Another compiler or processor makes another build, as 'perfsuite devices setup' does."""
    made = plant_bundle(tmp_path / "bundle")
    monkeypatch.setattr(_MAKE, lambda *_: Bundle(folder=made, manifest=read_manifest(made)))

    def ask(words: list[str], **_: object) -> None:
        (Path(words[-1].partition("=")[2]) / "requests").mkdir()

    monkeypatch.setattr(bundle, "refuse_mistakes", lambda *_, **__: None)
    monkeypatch.setattr(bundle, "ask_pytest", ask)
    words = ["bundle", "--quiet", "--plan", "-o", str(tmp_path / "job"), "--", "--device=rubikpi", "--threads=2"]
    assert main(words) == 0
    manifest = read_manifest(made)
    told = f"built by {manifest.compiler} for {manifest.processor}: compare its times with plans built so, "
    assert f"{told}not with what 'perfsuite devices setup' builds\n" in capsys.readouterr().out

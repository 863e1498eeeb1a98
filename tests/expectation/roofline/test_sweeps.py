"""The sweeps: which workloads each of them runs, and what is refused before anything runs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from perfsuite.errors import PerfsuiteError
from perfsuite.expectation.roofline.roofline_run import subject_of
from perfsuite.expectation.roofline.sweeps import (
    ATTENTIONS,
    SWEEPS,
    SweepPoint,
    SweepSubject,
    base_point,
    sweep_points,
)
from perfsuite.workload.weights import materialize, resolve

from ...unknown_weights import write_unknown

USUAL = SweepSubject(
    weights="smollm2-135m-q8_0", n_threads=2, thread_counts=(1, 2, 4), is_long=False, cache_dir=Path("/nowhere")
)


def swept(name: str, **changes: Any) -> tuple[SweepPoint, ...]:
    return sweep_points((name,), replace(USUAL, **changes))


def weights_of(name: str, **changes: Any) -> list[str]:
    return [point.workload.weights.name for point in swept(name, **changes)]


#: What a sweep may change of the subject, and nothing else.
VARIED = {
    "scenario": {"scenario", "n_prompt", "n_gen"},
    "length": {"scenario", "n_prompt"},
    "depth": {"weights", "architecture", "n_layers", "n_parameters"},
    "precision": {"weights", "quantization"},
    "attention": {"weights", "architecture", "attention", "n_parameters"},
    "kv": {"type_k", "type_v"},
    "flash": {"flash_attn"},
    "threads": {"n_threads"},
}


@pytest.mark.parametrize("is_long", [False, True])
@pytest.mark.parametrize("name", VARIED)
def test_one_thing_changes_in_a_sweep(name: str, is_long: bool) -> None:
    subjects = [subject_of(point.workload, point.n_threads) for point in swept(name, is_long=is_long)]
    fields = subjects[0].__dataclass_fields__
    assert {each for each in fields if len({getattr(of, each) for of in subjects}) > 1} == VARIED[name]


@pytest.mark.parametrize("is_long", [False, True])
@pytest.mark.parametrize("name", SWEEPS)
def test_points_have_ids_of_their_own(name: str, is_long: bool) -> None:
    points = swept(name, is_long=is_long)
    assert {point.sweep for point in points} == {name}
    assert len({point.setting for point in points}) == len(points)
    assert len({subject_of(point.workload, point.n_threads).name for point in points}) == len(points)


OWN, DEEP = "smollm2-135m-q8_0", "p128-g24-d1024"
ROUTED = (("qwen1.5", "qwen1.5-moe-a2.7b-l2-q4_0"), ("deepseek", "deepseek-v2-lite-l3-q4_0"))


@pytest.mark.parametrize(
    ("name", "is_long", "places"),
    [
        ("scenario", False, [(name, None, OWN, name) for name in ("siso", "liso", "silo", "lilo")]),
        ("scenario", True, [(f"{name}-long", None, OWN, f"{name}-long") for name in ("siso", "liso", "silo", "lilo")]),
        ("length", False, [(str(n), n, OWN, f"p{n}-g16") for n in (16, 32, 64, 128, 256, 512)]),
        ("length", True, [(str(16 << at), 16 << at, OWN, f"p{16 << at}-g16") for at in range(9)]),
        ("depth", False, [(str(n), n, f"smollm2-135m-l{n}-q8_0", "p128-g24") for n in (2, 4, 8, 16, 32, 64)]),
        ("precision", False, [(name, None, f"smollm2-135m-{name}", "silo") for name in ("f16", "q8_0", "q4_k_m")]),
        ("precision", True, [(name, None, f"smollm2-135m-{name}", "silo-long") for name in ("f16", "q8_0", "q4_k_m")]),
        ("moe", False, [(f"{a} {n}", n, w, f"p{n}-g16") for a, w in ROUTED for n in (1, 4, 16, 64, 256)]),
        ("attention", False, [(kind, None, f"attention-{kind}-135m-q8_0", DEEP) for kind in ATTENTIONS]),
        ("attention", True, [(kind, None, f"attention-{kind}-1.5b-q8_0", DEEP) for kind in ATTENTIONS]),
        ("kv", False, [(kind, None, OWN, DEEP) for kind in ("f32", "f16", "q8_0", "q4_0")]),
        ("flash", False, [(way, None, OWN, DEEP) for way in ("on", "off")]),
        ("threads", False, [(str(n), n, OWN, "p128-g24") for n in (1, 2, 4)]),
    ],
)
def test_the_places_of_a_sweep(name: str, is_long: bool, places: list[tuple[str, float | None, str, str]]) -> None:
    """The label, the number, the weights and the scenario of each, short ones or such as lengths of real use have."""
    assert [
        (point.setting, point.value, point.workload.weights.name, point.workload.scenario.name)
        for point in swept(name, is_long=is_long)
    ] == places


def test_the_settings_of_a_sweep() -> None:
    """Kinds of attention run without flash attention, types of the cache with it, and only `flash` does either."""
    attentions, caches, flash = (
        [(point.setting, point.workload.settings) for point in swept(name)] for name in ("attention", "kv", "flash")
    )
    assert not any(each.flash_attn for _, each in attentions)
    assert [(name, each.type_k, each.type_v, each.flash_attn) for name, each in caches] == [
        (name, name, name, True) for name in ("f32", "f16", "q8_0", "q4_0")
    ]
    assert [(name, each.flash_attn) for name, each in flash] == [("on", True), ("off", False)]
    found = [subject_of(point.workload, 2).attention for point in swept("attention")]
    assert found == ["mha", "gqa", "mla", "mla"]


@pytest.mark.parametrize("name", ["flash", "kv"])
def test_what_needs_flash_attention_is_refused_without(name: str) -> None:
    """An architecture without flash attention is not measured as if it were on, nor with a cache that needs it."""
    with pytest.raises(PerfsuiteError, match=rf"--model=plm-1.8b-q8_0: .* no flash attention, which sweep '{name}'"):
        swept(name, weights="plm-1.8b-q8_0")


@pytest.fixture(scope="module")
def given_file(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("models")
    path = materialize(resolve("smollm2-135m-l2-q8_0", cache_dir=folder), cache_dir=folder)
    return str(path.rename(folder / "own.gguf"))


@pytest.mark.parametrize("name", ["depth", "precision", "attention"])
def test_a_file_has_one_depth_attention_and_precision(given_file: str, name: str) -> None:
    """A given file cannot be varied in what it is; one line says so and what can."""
    with pytest.raises(
        PerfsuiteError, match=r"a file has one depth, attention and precision; .* smollm2-135m-q8_0"
    ) as told:
        swept(name, weights=given_file)
    assert str(told.value).startswith(f"--model={given_file}: ")
    assert "\n" not in str(told.value)


@pytest.mark.long_but_first
@pytest.mark.parametrize("name", ["scenario", "length", "kv", "flash", "threads"])
def test_a_file_is_swept_in_everything_else(given_file: str, name: str) -> None:
    """The sweep over experts has architectures and a precision of its own, so that a file does not get in its way."""
    assert set(weights_of(name, weights=given_file)) == {"own"}
    assert {str(point.workload.weights.path) for point in swept(name, weights=given_file)} == {given_file}
    assert weights_of("moe", weights=given_file) == weights_of("moe")


def test_a_file_whose_work_cannot_be_counted_is_refused(tmp_path: Path) -> None:
    """One of an architecture that is not known, before anything runs; the sweep over experts needs it not."""
    path = str(write_unknown(tmp_path / "odd.gguf"))
    with pytest.raises(PerfsuiteError, match=f"^{path}: architecture 'unheard-of' is not supported; "):
        base_point(replace(USUAL, weights=path), "siso")
    assert weights_of("moe", weights=path) == weights_of("moe")

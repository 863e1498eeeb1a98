"""The sweeps: which workloads each of them runs, and what is refused before anything runs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from perfsuite.errors import ArchitectureError, PerfsuiteError
from perfsuite.expectation.roofline.roofline_run import subject_of
from perfsuite.expectation.roofline.sweeps import (
    ATTENTIONS,
    BASE,
    DEPTHS,
    EXPERTS,
    KV_TYPES,
    QUANTIZATIONS,
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
    """Return the points of one sweep."""
    return sweep_points((name,), replace(USUAL, **changes))


def weights_of(points: tuple[SweepPoint, ...]) -> list[str]:
    """Return the names of the weights in turn."""
    return [point.workload.weights.name for point in points]


def scenarios_of(points: tuple[SweepPoint, ...]) -> list[str]:
    """Return the names of the scenarios in turn."""
    return [point.workload.scenario.name for point in points]


def settings_of(points: tuple[SweepPoint, ...]) -> list[str]:
    """Return the labels in turn."""
    return [point.setting for point in points]


def varied(points: tuple[SweepPoint, ...]) -> set[str]:
    """Return the fields of the subject in which the points differ."""
    subjects = [subject_of(point.workload, point.n_threads) for point in points]
    names = subjects[0].__dataclass_fields__
    return {name for name in names if len({getattr(each, name) for each in subjects}) > 1}


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
    """Every sweep changes what it is named after, and nothing beside it."""
    assert varied(swept(name, is_long=is_long)) == VARIED[name]


@pytest.mark.parametrize("is_long", [False, True])
@pytest.mark.parametrize("name", SWEEPS)
def test_points_have_ids_of_their_own(name: str, is_long: bool) -> None:
    """No two points of a sweep share a label or the name of their subject, and all are of the sweep."""
    points = swept(name, is_long=is_long)
    assert {point.sweep for point in points} == {name}
    assert len(set(settings_of(points))) == len(points)
    assert len({subject_of(point.workload, point.n_threads).name for point in points}) == len(points)


def test_the_scenarios_are_the_four_classes() -> None:
    """Short ones usually, long ones where lengths of real use are asked for, never both."""
    assert scenarios_of(swept("scenario")) == ["siso", "liso", "silo", "lilo"]
    assert scenarios_of(swept("scenario", is_long=True)) == ["siso-long", "liso-long", "silo-long", "lilo-long"]


def test_lengths_double() -> None:
    """Prompts double from 16 tokens to 512, and to 4096 where they are long; 16 tokens follow each."""
    points = swept("length")
    assert [point.value for point in points] == [16, 32, 64, 128, 256, 512]
    assert scenarios_of(points)[0] == "p16-g16"
    longer = swept("length", is_long=True)
    assert [point.value for point in longer] == [16 << power for power in range(9)]
    assert [point.workload.scenario.n_prompt for point in longer] == [point.value for point in longer]


def test_depths_are_in_the_names_of_the_weights() -> None:
    """The same architecture with 2 to 64 layers, in the subject's own precision."""
    points = swept("depth")
    assert DEPTHS == (2, 4, 8, 16, 32, 64)
    assert weights_of(points) == [f"smollm2-135m-l{n_layers}-q8_0" for n_layers in DEPTHS]
    assert [point.workload.weights.architecture.n_layers for point in points] == list(DEPTHS)
    assert [point.value for point in points] == list(DEPTHS)
    assert set(scenarios_of(points)) == {"p128-g24"}


def test_a_subject_that_is_cut_in_depth_is_swept_in_depth() -> None:
    """A depth in the subject's name gives way to those of the sweep, and stays in every other sweep."""
    assert weights_of(swept("depth", weights="smollm2-135m-l4-q8_0")) == weights_of(swept("depth"))
    assert weights_of(swept("precision", weights="smollm2-135m-l4-q8_0"))[0] == "smollm2-135m-l4-f16"


def test_precisions_are_in_the_names_of_the_weights() -> None:
    """F16, Q8_0 and Q4_K_M of one architecture, whatever the subject's own, with a long generation."""
    for own in ("q8_0", "q4_0"):
        points = swept("precision", weights=f"smollm2-135m-{own}")
        assert weights_of(points) == [f"smollm2-135m-{each}" for each in QUANTIZATIONS]
    assert settings_of(points) == ["f16", "q8_0", "q4_k_m"]
    assert set(scenarios_of(points)) == {"silo"}
    assert set(scenarios_of(swept("precision", is_long=True))) == {"silo-long"}


def test_experts_are_their_own_architectures() -> None:
    """Routed experts are swept over prompts from one token on, whatever the subject's architecture."""
    points = swept("moe")
    assert weights_of(points) == [f"{architecture}-q4_0" for architecture in EXPERTS for _ in range(5)]
    assert [point.value for point in points] == [1, 4, 16, 64, 256] * 2
    assert all("moe" in name or "deepseek" in name for name in weights_of(points))


@pytest.mark.parametrize(("is_long", "size"), [(False, "135m"), (True, "1.5b")])
def test_attentions_are_compared_alike(is_long: bool, size: str) -> None:
    """Kinds of attention of one size in the subject's precision, all without flash attention; MLA has two engines."""
    points = swept("attention", is_long=is_long)
    assert weights_of(points) == [f"attention-{kind}-{size}-q8_0" for kind in ATTENTIONS]
    found = [subject_of(point.workload, 2).attention for point in points]
    assert found == [kind.partition("-")[0] for kind in ATTENTIONS] == ["mha", "gqa", "mla", "mla"]
    assert {point.workload.settings.flash_attn for point in points} == {False}
    assert {point.workload.scenario.n_depth for point in points} == {1024}


def test_types_of_the_cache_are_those_of_keys_and_values() -> None:
    """Keys and values change together, with flash attention and 1024 tokens of context."""
    points = swept("kv")
    settings = [point.workload.settings for point in points]
    assert [(each.type_k, each.type_v) for each in settings] == [(kind, kind) for kind in KV_TYPES]
    assert all(each.flash_attn for each in settings)
    assert settings_of(points) == ["f32", "f16", "q8_0", "q4_0"]
    assert {point.workload.scenario.n_depth for point in points} == {1024}


def test_flash_attention_is_on_and_off() -> None:
    """The label says what runs."""
    points = swept("flash")
    assert [(point.setting, point.workload.settings.flash_attn) for point in points] == [("on", True), ("off", False)]


@pytest.mark.parametrize("name", ["flash", "kv"])
def test_what_needs_flash_attention_is_refused_without(name: str) -> None:
    """An architecture without flash attention is not measured as if it were on, nor with a cache that needs it."""
    with pytest.raises(PerfsuiteError, match=rf"--model=plm-1.8b-q8_0: .* no flash attention, which sweep '{name}'"):
        swept(name, weights="plm-1.8b-q8_0")


def test_threads_are_the_counts_that_are_asked_for() -> None:
    """Each number of threads is a point with that many; every other sweep runs on the subject's own."""
    assert [(point.value, point.n_threads) for point in swept("threads")] == [(1, 1), (2, 2), (4, 4)]
    others = [name for name in SWEEPS if name != "threads"]
    assert {point.n_threads for point in sweep_points(tuple(others), replace(USUAL, n_threads=3))} == {3}


def test_sweeps_follow_one_another() -> None:
    """Points come in the order of the names, each sweep once."""
    points = sweep_points(("flash", "depth", "flash"), USUAL)
    assert [point.sweep for point in points] == ["flash"] * 2 + ["depth"] * 6
    assert sweep_points((), USUAL) == ()


def test_the_base_is_the_subject_itself() -> None:
    """Where nothing varies there is one point, labelled by its scenario."""
    point = base_point(USUAL, "p8-g2")
    assert (point.sweep, point.setting, point.value, point.n_threads) == (BASE, "p8-g2", None, 2)
    assert point.workload.weights.name == "smollm2-135m-q8_0"


def test_an_unknown_sweep_is_refused() -> None:
    """A name that is no sweep is refused with those that are, before another one is looked at."""
    with pytest.raises(
        PerfsuiteError,
        match="sweep 'dance' is unknown; accepted are scenario, length, depth, precision, moe, attention, kv, flash, ",
    ):
        sweep_points(("depth", "dance"), replace(USUAL, weights="unknown-q8_0"))


def test_unknown_weights_are_refused() -> None:
    """Weights that the catalogue does not have are refused by every sweep that uses them."""
    with pytest.raises(ArchitectureError, match="'dance' is not in the catalogue"):
        swept("length", weights="dance-q8_0")


@pytest.fixture(scope="module")
def given_file(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Write weights into a file that somebody might have."""
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


@pytest.mark.parametrize("name", ["scenario", "length", "kv", "flash", "threads"])
def test_a_file_is_swept_in_everything_else(given_file: str, name: str) -> None:
    """What does not change the weights runs with the file."""
    points = swept(name, weights=given_file)
    assert set(weights_of(points)) == {"own"}
    assert {str(point.workload.weights.path) for point in points} == {given_file}


def test_experts_do_not_need_the_subjects_weights(given_file: str) -> None:
    """The sweep over experts has architectures and a precision of its own, so that a file does not stand in its way."""
    assert weights_of(swept("moe", weights=given_file)) == weights_of(swept("moe"))


def test_a_file_whose_work_cannot_be_counted_is_refused(tmp_path: Path) -> None:
    """One of an architecture that is not known, before anything runs; the sweep over experts needs it not."""
    path = str(write_unknown(tmp_path / "odd.gguf"))
    with pytest.raises(PerfsuiteError, match=f"^{path}: architecture 'unheard-of' is not supported; "):
        base_point(replace(USUAL, weights=path), "siso")
    assert weights_of(swept("moe", weights=path)) == weights_of(swept("moe"))

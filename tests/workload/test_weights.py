from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from perfsuite.errors import ArchitectureError, GgufError, QuantizationError
from perfsuite.expectation.requests.subject import find_any_subject
from perfsuite.workload.architecture import Architecture
from perfsuite.workload.catalog import find
from perfsuite.workload.gguf_metadata import read_gguf
from perfsuite.workload.synthetic import write_synthetic
from perfsuite.workload.weights import materialize, resolve, synthetic_weights

from ..unknown_weights import UNKNOWN, write_unknown


def test_a_name_gives_architecture_and_quantization(tmp_path: Path) -> None:
    """A catalogue name is resolved without writing anything, and may ask for another depth."""
    found = resolve("smollm2-135m-q8_0", cache_dir=tmp_path / "cache")
    assert found.name == "smollm2-135m-q8_0"
    assert found.architecture == find("smollm2-135m")
    assert found.tensor_types["blk.0.attn_q.weight"] == "Q8_0"
    assert (found.path, found.quantization) == (None, "q8_0")
    assert found.identity.startswith("synthetic:")
    assert list(tmp_path.iterdir()) == []
    cut = resolve("deepseek-v2-lite-l2-q4_0", cache_dir=tmp_path)
    assert (cut.name, cut.architecture.n_layers) == ("deepseek-v2-lite-l2-q4_0", 2)


def test_identities_differ_with_what_determines_the_bytes(tiny: Callable[..., Architecture], tmp_path: Path) -> None:
    """Depth and quantisation each change the identity, and asking again does not; another file has another."""
    paths = [tmp_path / f"{seed}.gguf" for seed in (0, 1)]
    for seed, path in enumerate(paths):
        write_synthetic(tiny(), "q8_0", path, seed=seed)
    names = ("pythia-70m-q8_0", "pythia-70m-q4_0", "pythia-70m-l2-q8_0", *map(str, paths), "pythia-70m-q8_0")
    identities = [resolve(name, cache_dir=tmp_path).identity for name in names]
    assert len(set(identities)) == 5
    assert identities[0] == identities[5]


def test_weights_are_written_once(tmp_path: Path) -> None:
    """The first call writes the file into the cache, later ones and later sessions find it."""
    cache = tmp_path / "deep" / "cache"
    weights = resolve("pythia-70m-l2-q4_0", cache_dir=cache)
    path = materialize(weights, cache_dir=cache)
    digits = weights.identity.removeprefix("synthetic:")
    assert path == cache / f"pythia-70m-l2-q4_0-{digits}.gguf"
    assert read_gguf(path).tensor_types == weights.tensor_types
    written_ns = path.stat().st_mtime_ns
    again = resolve("pythia-70m-l2-q4_0", cache_dir=cache)
    assert again.path == path
    assert materialize(again, cache_dir=cache) == path
    assert path.stat().st_mtime_ns == written_ns


def test_a_file_is_described(tiny: Callable[..., Architecture], tmp_path: Path) -> None:
    """A path gives the file's own architecture and types under a name fit for a case id."""
    path = tmp_path / "My model (v2).gguf"
    write_synthetic(tiny(), "q4_k_m", path)
    found = resolve(str(path), cache_dir=tmp_path)
    assert (found.name, found.quantization, found.path) == ("My-model-v2", None, path)
    assert found.identity.startswith("sha256:")
    assert replace(found.architecture, name="tiny") == tiny()
    assert materialize(found, cache_dir=tmp_path) == path


def test_a_file_of_an_architecture_that_is_not_known_can_be_run(tmp_path: Path) -> None:
    path = write_unknown(tmp_path / "odd.gguf")
    found = resolve(str(path), cache_dir=tmp_path)
    assert (found.name, found.gguf_architecture, found.known_architecture) == ("odd", UNKNOWN, None)
    assert materialize(found, cache_dir=tmp_path) == path


def test_a_path_that_exists_is_a_file(
    tiny: Callable[..., Architecture], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever its suffix; one that is called like a model of the catalogue is refused with both meanings."""
    monkeypatch.chdir(tmp_path)
    for name in ("downloaded", "smollm2-135m-q8_0"):
        write_synthetic(tiny(), "q8_0", tmp_path / name)
    assert resolve("downloaded", cache_dir=tmp_path).path == Path("downloaded")
    assert find_any_subject("downloaded").tensor_types is not None
    with pytest.raises(GgufError, match=r"is a name of the catalogue and a file here; write \./smollm2-135m-q8_0"):
        resolve("smollm2-135m-q8_0", cache_dir=tmp_path)


def test_any_architecture_can_be_synthetic(tiny: Callable[..., Architecture], tmp_path: Path) -> None:
    """A foreign architecture is named and written like those of the catalogue; one that went away is an error."""
    weights = synthetic_weights(tiny(), "q4_0", cache_dir=tmp_path)
    assert weights.name == "tiny-q4_0"
    path = materialize(weights, cache_dir=tmp_path)
    found = resolve(str(path), cache_dir=tmp_path)
    path.unlink()
    with pytest.raises(GgufError, match=r"\.gguf: no such file"):
        materialize(found, cache_dir=tmp_path)


@pytest.mark.parametrize(
    ("name", "error", "message"),
    [
        ("smollm-135m-q8_0", ArchitectureError, "'smollm-135m' is not in the catalogue; did you mean smollm2-135m"),
        ("smollm2-135m-q9_0", QuantizationError, "quantisation 'q9_0' is unknown; accepted are f32"),
        ("smollm2-135m", QuantizationError, "'smollm2-135m' lacks a quantisation, as in smollm2-135m-q8_0"),
        ("none.gguf", GgufError, "none.gguf: no such file"),
    ],
)
def test_mistakes_get_one_line(tmp_path: Path, name: str, error: type[Exception], message: str) -> None:
    with pytest.raises(error) as caught:
        resolve(name, cache_dir=tmp_path)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_model_of_any_architecture_has_weights(tmp_path: Path) -> None:
    """A listed model is resolved and written, of no architecture that is known; its file has the same shape."""
    found = resolve("tiny-granitehybrid-q8_0", cache_dir=tmp_path)
    assert found.known_architecture is None
    assert (found.shape.n_layers, found.shape.n_embd, found.shape.n_vocab) == (2, 256, 384)
    path = materialize(found, cache_dir=tmp_path)
    given = resolve(str(path), cache_dir=tmp_path)
    assert given.shape.tensors == found.shape.tensors
    assert (given.shape.n_layers, given.shape.n_embd, given.shape.n_vocab) == (2, 256, 384)
    assert dict(given.tensor_types) == dict(found.tensor_types)


def test_a_listed_model_is_cut_by_its_name(tmp_path: Path) -> None:
    """The suffix of a depth cuts a model of any architecture, under an identity of its own."""
    whole, cut = (resolve(f"lfm2-350m{depth}-q4_0", cache_dir=tmp_path) for depth in ("", "-l3"))
    assert (cut.name, cut.shape.n_layers, whole.shape.n_layers) == ("lfm2-350m-l3-q4_0", 3, 16)
    assert cut.identity != whole.identity


def test_the_families_keep_their_identities(tmp_path: Path) -> None:
    """Files that were written before there were other architectures are still the ones that are meant."""
    found = resolve("smollm2-135m-l1-q4_k_m", cache_dir=tmp_path)
    assert found.identity == "synthetic:665a54de8efb4520"

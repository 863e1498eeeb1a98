"""Where ggml's tensor has its fields, and what goes with another build."""

from __future__ import annotations

import mmap
import os
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import gguf
import pytest

from perfsuite.errors import EngineError, MeasurementError, NativeBuildError
from perfsuite.measure import tensor_layout as module
from perfsuite.measure.engine import Engine, library_build_id
from perfsuite.measure.plan import LlamaPlan
from perfsuite.measure.tensor_layout import layout_of, mapped_layout_library, refuse_other_layout, tensor_layout
from perfsuite.records.tensor_layout import TensorLayout

from .traced_llama import TracedLlama, build_traced_llama


def test_fields_lie_in_the_tensor(layout: TensorLayout, engine: Engine) -> None:
    fields = ("type", "ne", "nb", "op", "op_params", "flags", "src", "view_src", "data", "name")
    places = [getattr(layout, f"{name}_at") for name in fields]
    assert places == sorted(places)
    assert layout.nb_at - layout.ne_at == 32
    assert layout.view_src_at - layout.src_at == 8 * layout.n_src
    assert layout.name_at + layout.name_bytes <= layout.tensor_bytes <= 512
    assert layout.build_id == library_build_id(engine.library("libggml-base"))
    assert {"MUL_MAT", "MUL_MAT_ID", "RMS_NORM"} <= set(layout.ops)
    assert layout.ops[0] == "NONE"
    assert "SILU" in layout.unary_ops
    assert "SWIGLU" in layout.glu_ops


@pytest.mark.parametrize("name", ["F32", "F16", "BF16", "Q4_0", "Q5_1", "Q8_0", "Q4_K", "Q6_K", "IQ4_NL"])
def test_types_are_those_of_gguf(layout: TensorLayout, name: str) -> None:
    """Numbers and block sizes of weights agree with the gguf package, which has them from elsewhere."""
    number = gguf.GGMLQuantizationType[name]
    told = layout.types[number]
    assert told.name.upper() == name
    assert (told.block_elements, told.block_bytes) == gguf.GGML_QUANT_SIZES[number]


def test_it_is_asked_once(
    layout: TensorLayout, engine: Engine, engine_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "build_program", lambda *_, **__: pytest.fail("compiled again"))
    assert tensor_layout(engine, engine_cache) == layout
    (tmp_path / "native").mkdir()
    for kept in engine_cache.glob("native/tensor-layout-*.json"):
        (tmp_path / "native" / kept.name).write_text("{")
    with pytest.raises(NativeBuildError, match=r"tensor-layout-.*\.json: no layout of a tensor"):
        tensor_layout(engine, tmp_path)


def test_headers_of_another_build_are_refused(engine: Engine, engine_cache: Path, tmp_path: Path) -> None:
    """With one more field everything behind it would be read from the wrong place: the library's tensors show it."""
    include = tmp_path / "include"
    shutil.copytree(engine.include_dirs[0], include)
    header = (include / "ggml.h").read_text()
    field = "        struct ggml_backend_buffer * buffer;\n"
    assert header.count(field) == 1
    (include / "ggml.h").write_text(header.replace(field, field + "        int64_t added;\n"))
    with pytest.raises(NativeBuildError, match=r"does not look as its headers say.*name those of its own build"):
        layout_of((include,), engine.library("libggml-base"), engine_cache)


def test_the_engines_own_process_is_accepted(
    layout: TensorLayout, engine: Engine, small_plan: LlamaPlan, tmp_path: Path
) -> None:
    program = build_traced_llama(engine, tmp_path)
    with TracedLlama(program, small_plan.gguf_path) as target:
        refuse_other_layout(layout, target.pid)
        mapped = mapped_layout_library(target.pid)
        assert library_build_id(mapped) == layout.build_id
        with pytest.raises(EngineError, match=r"name the headers of that build with --ggml-include DIR"):
            refuse_other_layout(replace(layout, build_id="another"), target.pid)


def test_a_library_that_was_replaced_is_told(layout: TensorLayout, tmp_path: Path) -> None:
    library = tmp_path / "libggml-base.so.0"
    library.write_bytes(bytes(64))
    with library.open("rb") as file, mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ):
        library.unlink()
        with pytest.raises(
            EngineError, match=r"libggml-base\.so\.0 was replaced after the process loaded it; start that"
        ):
            refuse_other_layout(layout, os.getpid())


def test_a_process_without_llama_is_refused(layout: TensorLayout) -> None:
    with subprocess.Popen(["sleep", "60"]) as other:
        with pytest.raises(EngineError, match=f"process {other.pid}: maps no libggml-base"):
            refuse_other_layout(layout, other.pid)
        with pytest.raises(EngineError, match="maps no libggml-base"):
            mapped_layout_library(other.pid)
        other.kill()
    with pytest.raises(MeasurementError, match="is not there, or has ended"):
        refuse_other_layout(layout, other.pid)

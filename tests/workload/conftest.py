"""Small architectures of every family, and llama.cpp in a fresh process as the judge of what the suite writes."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from perfsuite.workload.architecture import Architecture, LatentAttention, MixtureOfExperts
from perfsuite.workload.families import family_of

_DECODE = """
import json, sys
import numpy as np
import llama_cpp as engine

@engine.llama_log_callback
def quiet(level, text, user_data):
    pass

engine.llama_log_set(quiet, None)
engine.llama_backend_init()
found = []
for path, flash_attention in json.loads(sys.argv[1]):
    model = engine.llama_model_load_from_file(path.encode(), engine.llama_model_default_params())
    assert model, f"{path} does not load"
    params = engine.llama_context_default_params()
    params.n_ctx, params.n_batch, params.n_threads, params.n_threads_batch = 64, 16, 2, 2
    if not flash_attention:
        params.flash_attn_type = 0
    context = engine.llama_init_from_model(model, params)
    assert context, f"{path} gives no context"
    n_vocab = engine.llama_vocab_n_tokens(engine.llama_model_get_vocab(model))
    logits = []
    for tokens in ([token * 7919 % n_vocab for token in range(1, 9)], [n_vocab - 1]):
        array = (engine.llama_token * len(tokens))(*tokens)  # the batch only points to it
        batch = engine.llama_batch_get_one(array, len(tokens))
        assert engine.llama_decode(context, batch) == 0, f"{path} does not decode"
        logits.append(np.ctypeslib.as_array(engine.llama_get_logits(context), (n_vocab,)).astype(np.float64))
    found.append(
        {
            "finite": bool(np.isfinite(logits).all()),
            "deviation": float(np.std(logits[1])),
            "differ": bool(np.any(logits[0] != logits[1])),
            "n_parameters": engine.llama_model_n_params(model),
            "size_bytes": engine.llama_model_size(model),
        }
    )
    engine.llama_free(context)
    engine.llama_model_free(model)
print(json.dumps(found))
"""

_QUANTIZE = """
import json, sys
import llama_cpp as engine

@engine.llama_log_callback
def quiet(level, text, user_data):
    pass

engine.llama_log_set(quiet, None)
engine.llama_backend_init()
for source, target, file_type, pure in json.loads(sys.argv[1]):
    params = engine.llama_model_quantize_default_params()
    params.nthread, params.ftype, params.pure = 2, file_type, pure
    code = engine.llama_model_quantize(source.encode(), target.encode(), params)
    assert code == 0, f"{target}: {code}"
"""


def _run(script: str, argument: object) -> str:
    command = [sys.executable, "-c", script, json.dumps(argument)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


@pytest.fixture(autouse=True)
def _disk_space(tmp_path: Path) -> Iterator[None]:
    """Delete weights after each test, for pytest keeps the directories of three runs."""
    yield
    for path in tmp_path.rglob("*.gguf"):
        path.unlink()


@pytest.fixture(scope="session")
def decode() -> Callable[..., list[dict[str, Any]]]:
    """Load GGUF files in one fresh process, decode nine tokens with each, and describe the logits."""

    def run(*paths: Path, flash_attention: bool = True) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = json.loads(_run(_DECODE, [(str(path), flash_attention) for path in paths]))
        return found

    return run


@pytest.fixture(scope="session")
def quantize_with_engine() -> Callable[[list[tuple[str, str, int, bool]]], None]:
    """Quantise GGUF files with llama.cpp's own quantiser: (source, target, file type, pure)."""

    def run(jobs: list[tuple[str, str, int, bool]]) -> None:
        _run(_QUANTIZE, jobs)

    return run


_PLAIN = Architecture(
    name="tiny",
    gguf_architecture="llama",
    n_layers=9,
    n_embd=256,
    n_heads=4,
    n_kv_heads=2,
    head_dim=64,
    v_head_dim=64,
    n_ff=512,
    n_vocab=384,
    n_ctx_train=512,
    tied_embeddings=True,
    n_rot=64,
    norm_eps=1e-5,
    rope_freq_base=10000.0,
)
_EXPERTS = MixtureOfExperts(n_experts=6, n_experts_used=2, n_ff_expert=256, n_ff_shared=512)


def _latent(absorbed: bool) -> dict[str, Any]:
    latent = LatentAttention(
        q_lora_rank=None, kv_lora_rank=256, qk_nope_head_dim=32, qk_rope_head_dim=32, v_head_dim=64, absorbed=absorbed
    )
    return {"n_rot": 32, "n_kv_heads": 1 if absorbed else 4, "mla": latent}


_CHANGES: dict[str, dict[str, Any]] = {
    "llama": {"rope_freq_factors": True},
    "qwen2": {"qkv_bias": True, "tied_embeddings": False},
    "qwen3": {"qk_norm": True},
    "gemma2": {"sliding_window": 32, "attn_logit_softcap": 50.0, "final_logit_softcap": 30.0},
    "gptneox": {
        "qkv_bias": True,
        "fused_qkv": True,
        "tied_embeddings": False,
        "n_rot": 16,
        "parallel_residual": True,
        "n_kv_heads": 4,
    },
    "phi3": {"fused_qkv": True, "n_rot": 48, "rope_freq_factors": True, "n_ctx_orig": 128},
    "plm": _latent(absorbed=False),
    "qwen2moe": {"qkv_bias": True, "tied_embeddings": False, "moe": _EXPERTS},
    "deepseek2": {
        **_latent(absorbed=True),
        "tied_embeddings": False,
        "moe": replace(_EXPERTS, n_dense_layers=1, normalize_weights=True, weights_scale=2.5),
    },
}


@pytest.fixture(scope="session")
def tiny() -> Callable[..., Architecture]:
    """Build a small architecture of a family, with any fields changed."""

    def build(gguf_architecture: str = "llama", **changes: Any) -> Architecture:
        family = family_of(gguf_architecture)
        fields = {"gguf_architecture": family.gguf_architecture, **_CHANGES[gguf_architecture], **changes}
        return replace(_PLAIN, **fields)

    return build

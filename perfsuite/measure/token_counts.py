"""Counts the tokens of texts by a GGUF's own tokenizer, in a process of its own: a broken file may crash it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from perfsuite.errors import GgufError, MeasurementError
from perfsuite.records.own_files import own_python
from perfsuite.workload.gguf_header import read_header

#: Longest that a tokenizer may take for all texts together.
LIMIT_S = 300.0

_NO_TOKENIZER = "no_vocab"

#: The child is given this very suite, so that a source tree works that was never installed.
_CHILD = "import sys; sys.path.insert(0, sys.argv[1]); from perfsuite.measure.token_counts import main; main()"
_OWN_ROOT = str(Path(__file__).resolve().parents[2])


def count_tokens(gguf_path: Path, texts: Sequence[str]) -> tuple[int, ...]:
    """Return how many tokens each text has, the beginning-of-sequence token included where the file asks for one.

    Raises `GgufError` where the file cannot be read, or has no tokenizer, as synthetic ones have none;
    `MeasurementError` where llama.cpp failed on it, or ran past `LIMIT_S`.
    """
    if read_header(gguf_path).metadata.get("tokenizer.ggml.model", _NO_TOKENIZER) == _NO_TOKENIZER:
        raise GgufError(f"{gguf_path}: has no tokenizer; name a GGUF that has one, or give n_tokens with the prompts")
    request = json.dumps({"gguf_path": str(gguf_path), "texts": list(texts)})
    command = own_python("-c", _CHILD, _OWN_ROOT)
    try:
        done = subprocess.run(command, input=request, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    except subprocess.TimeoutExpired:
        raise MeasurementError(f"{gguf_path}: its tokenizer was still at work after {LIMIT_S:.0f} s") from None
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or ["it printed nothing"])[-1]
        raise MeasurementError(f"{gguf_path}: its tokenizer failed: {last}")
    return tuple(json.loads(done.stdout))


def main() -> None:
    """Count in the child: what is asked comes on standard input, the counts go to standard output."""
    # Only this process may load the library.
    from llama_cpp import Llama

    asked = json.load(sys.stdin)
    tokenizer = Llama(asked["gguf_path"], vocab_only=True, verbose=False)
    json.dump([len(tokenizer.tokenize(text.encode())) for text in asked["texts"]], sys.stdout)

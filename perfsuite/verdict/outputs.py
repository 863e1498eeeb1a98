"""Whether two sides of a comparison compute the same: logits and greedy tokens of the same prompts, side by side."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from statistics import median

import numpy as np

from perfsuite.errors import MeasurementError
from perfsuite.records.engine_columns import DECODE_ROW, OUTPUT_DTYPE, PREFILL_ROW
from perfsuite.records.events import RECORD, TODO, EngineRecord, KeptOutputs

#: What rows are of, by their phase; and what is compared beside them.
_ROWS = {
    PREFILL_ROW: "the logits of prefill, by their spread,",
    DECODE_ROW: "the logits of decode, by their spread,",
    9: "the embeddings, by their spread,",
}
_TOKENS = "the greedy tokens"

#: The most that two sides which compute the same may differ by: values by their RMS difference over their spread, and
#: greedy tokens by the share that is another one.
#:
#: Source: tests/measure/test_launch_faulty_engine.py and one build with random weights: smollm2-135m whole and cut to
#: 2 layers, pythia-70m-l4, qwen1.5-moe-a2.7b-l1, Q8_0 and Q4_K_M, 4 prompts of 64 tokens, 16 steps. The median error
#: was 0 with another number of threads, up to 0.04 without flash attention, up to 0.04 with smaller batches, and up to
#: 9 % of the tokens were others. Without a norm, the gate of the feed-forward, a third of it, or a projection, with
#: half of the attention's scale, of the prompt, or all but a token of it, or with another token in a step, 0.18 and
#: more in prefill or decode. One was less and is not found: half of a prompt in pythia-70m-l4, 0.09, whose random
#: weights hardly attend.
_MOST = {**dict.fromkeys(_ROWS.values(), 0.1), _TOKENS: 0.25}

#: By what is compared, an error for each pair of rows.
OutputErrors = Mapping[str, tuple[float, ...]]


def output_errors(old: EngineRecord | KeptOutputs, new: EngineRecord | KeptOutputs) -> OutputErrors:
    """Return how far the outputs of two processes that read the same prompts lie apart; nothing of what one lacks.

    A constant that all values of a row differ by is none: probabilities do not depend on it.
    """
    (old_rows, old_tokens), (new_rows, new_tokens) = _read(old), _read(new)
    found: dict[str, tuple[float, ...]] = {}
    for phase, name in _ROWS.items():
        before, after = (rows["values"][rows["phase"] == phase].astype(float) for rows in (old_rows, new_rows))
        if len(before) and before.shape == after.shape:
            spread = np.maximum(before.std(axis=1), np.finfo(np.float32).tiny)
            found[name] = tuple(((after - before).std(axis=1) / spread).tolist())
    if len(old_tokens) and old_tokens.shape == new_tokens.shape:
        found[_TOKENS] = (float(np.mean(old_tokens != new_tokens)),)
    return found


def other_outputs(pairs: Iterable[OutputErrors], told: str = "the two sides compute different outputs") -> str | None:
    """Say that two sides compute something else; None where they differ by no more than rounding.

    The median over all prompts counts: near a tie, rounding alone sends a token to another expert.
    """
    pooled: dict[str, list[float]] = {}
    for errors in pairs:
        for name, values in errors.items():
            pooled.setdefault(name, []).extend(values)
    beyond = [
        f"{name} differ by {found * 100:.0f} % (limit {_MOST[name] * 100:g} %)"
        for name, values in pooled.items()
        if not (found := median(values)) <= _MOST[name]
    ]
    return f"{told}: {'; '.join(beyond)}" if beyond else None


def _read(record: EngineRecord | KeptOutputs) -> tuple[np.ndarray, np.ndarray]:
    try:
        return np.frombuffer(record.outputs, OUTPUT_DTYPE), np.frombuffer(record.chosen_tokens, "<i4")
    except ValueError as error:
        raise MeasurementError(f"{RECORD}: outputs are no whole rows ({error}); {TODO}") from error

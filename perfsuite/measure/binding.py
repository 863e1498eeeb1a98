"""llama.cpp as a program in Python runs it, by llama-cpp-python; spans tell what the binding does beside the engine.

The entry points of the binding's classes are wrapped for this process: what they are called for is one of `Part`.
"""

from __future__ import annotations

import ctypes
import importlib
from bisect import bisect_right
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import wraps
from itertools import cycle, islice
from pathlib import Path
from time import monotonic_ns
from typing import Any

import numpy as np
import numpy.typing as npt

from perfsuite.device.work_folder import work_folder
from perfsuite.errors import EngineError, MeasurementError
from perfsuite.measure.binding_recorder import BindingRecorder
from perfsuite.measure.environment import name_engine
from perfsuite.measure.launch import planned_engine
from perfsuite.measure.native import load_engine_library
from perfsuite.measure.plan import LlamaPlan
from perfsuite.records.binding import BindingRecord, Door, Part, PartSpan, Request
from perfsuite.records.engine_columns import DECODE_ROW, N_OUTPUT_VALUES, OUTPUT_DTYPE, PREFILL_ROW
from perfsuite.records.events import EngineRecord, Phase, Span

#: The binding's classes and methods, in ``llama_cpp.llama`` and ``llama_cpp._internals``, and what each is called for.
_ENTRY_POINTS = (
    ("llama", "Llama", "tokenize", Part.TOKENIZE),
    ("_internals", "LlamaBatch", "set_batch", Part.BATCH),
    ("_internals", "LlamaContext", "decode", Part.DECODE),
    ("_internals", "LlamaContext", "get_logits", Part.LOGITS),
    ("_internals", "LlamaContext", "get_logits_ith", Part.LOGITS),
    ("llama", "Llama", "_init_sampler", Part.SAMPLING),
    ("llama", "Llama", "sample", Part.SAMPLING),
    ("llama", "Llama", "detokenize", Part.DETOKENIZE),
)

#: Words of the prompt, and what is appended to it until it has as many tokens as it should.
_WORDS = ("the", "quick", "brown", "fox", "jumps", "over", "the", "lazy", "dog", "and", "runs", "home")
_FILLING = " a"

_SEED = 1
_PIECE_BYTES = 256
_N_EMPTY_SPANS = 2000


class Binding:
    """A model that llama-cpp-python has loaded, with both ways to ask it for tokens."""

    def __init__(self, plan: LlamaPlan, recorder: BindingRecorder) -> None:
        """Load the model; raises `EngineError` where the binding cannot, or has no such functions."""
        self._plan, self._recorder = plan, recorder
        self._spans: list[tuple[Part, int, int]] = []
        self._requests: list[Request] = []
        #: Evaluations of the requests that are kept.
        self._evaluations: list[Span] = []
        #: What their prompts and last steps came to, and the tokens that the greedy sampler chose.
        self._outputs: list[bytes] = []
        self._chosen: list[int] = []
        self._api: Any = importlib.import_module("llama_cpp.llama_cpp")
        module: Any = importlib.import_module("llama_cpp.llama")
        start_ns = monotonic_ns()
        try:
            with recorder.attached(self._api):
                self._llama = module.Llama(
                    plan.gguf_path,
                    n_ctx=plan.n_ctx,
                    n_batch=plan.n_batch,
                    n_ubatch=plan.n_ubatch,
                    n_threads=plan.n_threads,
                    n_threads_batch=plan.n_threads,
                    flash_attn=plan.flash_attn,
                    type_k=self._type(plan.type_k),
                    type_v=self._type(plan.type_v),
                    swa_full=plan.swa_full,
                    seed=_SEED,
                    verbose=False,
                )
        except (ValueError, AttributeError) as error:
            raise EngineError(f"{plan.gguf_path}: llama-cpp-python cannot load it: {error}") from error
        self._load_ns = monotonic_ns() - start_ns
        recorder.follow(self._api, self._llama.ctx)
        self._vocab = self._api.llama_model_get_vocab(self._llama.model)
        if self._api.llama_vocab_type(self._vocab) == self._api.LLAMA_VOCAB_TYPE_NONE:
            raise EngineError(f"{plan.gguf_path}: has no tokenizer, and so no text for the cases of the binding")
        self._n_vocab = self._api.llama_vocab_n_tokens(self._vocab)
        self._sampler = self._api.llama_sampler_chain_init(self._api.llama_sampler_chain_default_params())
        self._api.llama_sampler_chain_add(self._sampler, self._api.llama_sampler_init_greedy())
        self._prompt(plan.n_prompt, 0)
        for module_name, owner, name, part in _ENTRY_POINTS:
            self._wrap(getattr(importlib.import_module(f"llama_cpp.{module_name}"), owner), name, part)

    def warm_up(self) -> None:
        """Run all that a turn runs with a short prompt, of which nothing is kept."""
        for door in Door:
            self._ask(door, _WORDS[0], n_gen=1)
        self._outputs.clear()
        self._chosen.clear()
        self._recorder.clear()

    def run(self) -> None:
        """Ask once by each door, and keep what was recorded; who is first takes turns, and no text comes twice running.

        Before each the engine evaluates one token, as the native driver's warm-up does.
        """
        doors = list(Door)
        if len(self._requests) % (2 * len(doors)):
            doors.reverse()
        for door in doors:
            text = self._prompt(self._plan.n_prompt, self._plan.seed + len(self._requests))
            self._evaluate_one()
            self._recorder.clear()
            self._requests.append(self._ask(door, text, self._plan.n_gen))
            self._evaluations += self._evaluated(self._requests[-1], len(self._requests) - 1)
            self._recorder.keep()

    def record(self) -> BindingRecord:
        """Return the requests that were kept."""
        requests = tuple(self._requests)
        return BindingRecord(load_ns=self._load_ns, requests=requests, span_cost_ns=self._span_cost_ns())

    def engine_record(self) -> EngineRecord:
        """Return what was recorded of the engine beneath them; a repetition is the place of its request."""
        record = self._recorder.record(tuple(self._evaluations))
        chosen = np.array(self._chosen, "<i4").tobytes()
        return replace(record, outputs=b"".join(self._outputs), chosen_tokens=chosen)

    def _type(self, name: str) -> int:
        return int(getattr(self._api, f"GGML_TYPE_{name.upper()}"))

    # ---- requests ----------------------------------------------------------------------------------------------------

    def _evaluate_one(self) -> None:
        token = (self._api.llama_token * 1)()
        self._llama._ctx.kv_cache_clear()
        self._api.llama_decode(self._llama.ctx, self._api.llama_batch_get_one(token, 1))

    def _ask(self, door: Door, text: str, n_gen: int) -> Request:
        self._llama.reset()
        self._llama._ctx.kv_cache_clear()
        self._spans.clear()
        tokens = self._called(text, n_gen) if door is Door.CALLS else self._completed(text, n_gen)
        start_ns = monotonic_ns()
        token_ns = tuple(monotonic_ns() for _ in tokens)
        spans = (PartSpan(part=part, start_ns=first_ns, end_ns=last_ns) for part, first_ns, last_ns in self._spans)
        return Request(door=door, start_ns=start_ns, token_ns=token_ns, spans=tuple(spans))

    def _completed(self, text: str, n_gen: int) -> Iterator[None]:
        """Yield for each piece of text of a completion; one more token than is generated comes out of the prompt."""
        pieces = self._llama.create_completion(text, max_tokens=n_gen + 1, stream=True, seed=_SEED)
        yield from (None for piece in pieces if piece["choices"][0]["finish_reason"] is None)

    def _called(self, text: str, n_gen: int) -> Iterator[None]:
        """Yield for each token of the same work done call by call; the text goes on by the prompt's own tokens."""
        api, context, spans = self._api, self._llama.ctx, self._spans
        encoded = text.encode()
        logits_shape = (self._n_vocab,)
        piece = ctypes.create_string_buffer(_PIECE_BYTES)
        now = monotonic_ns
        prompt_logits = logits = np.empty(0, np.float32)
        began = now()
        tokens = (api.llama_token * (len(encoded) + 2))()
        n_tokens = api.llama_tokenize(self._vocab, encoded, len(encoded), tokens, len(tokens), True, True)
        spans.append((Part.TOKENIZE, began, now()))
        for at in range(n_gen + 1):
            began = now()
            batch = api.llama_batch_get_one(tokens, n_tokens)
            spans.append((Part.BATCH, began, began := now()))
            status = api.llama_decode(context, batch)
            spans.append((Part.DECODE, began, began := now()))
            if status:
                raise MeasurementError(f"llama_decode of {n_tokens} tokens returned {status}")
            logits = np.ctypeslib.as_array(api.llama_get_logits_ith(context, -1), shape=logits_shape).copy()
            spans.append((Part.LOGITS, began, began := now()))
            token = api.llama_sampler_sample(self._sampler, context, -1)
            spans.append((Part.SAMPLING, began, began := now()))
            n_bytes = api.llama_token_to_piece(self._vocab, token, piece, _PIECE_BYTES, 0, False)
            piece.raw[: max(0, n_bytes)].decode(errors="replace")
            spans.append((Part.DETOKENIZE, began, now()))
            self._chosen.append(token)
            prompt_logits = prompt_logits if at else logits
            tokens[0], n_tokens = tokens[(at + 1) % len(tokens)], 1
            yield
        self._outputs += (self._row(PREFILL_ROW, prompt_logits), self._row(DECODE_ROW, logits))

    def _row(self, phase: int, logits: npt.NDArray[np.float32]) -> bytes:
        row = np.zeros(1, OUTPUT_DTYPE)
        row["phase"], row["repetition"] = phase, len(self._requests)
        row["values"] = logits[np.arange(N_OUTPUT_VALUES) * self._n_vocab // N_OUTPUT_VALUES]
        return row.tobytes()

    def _evaluated(self, request: Request, place: int) -> Iterator[Span]:
        """Yield each evaluation of a request as the phase that it is."""
        n_prompt = self._plan.n_prompt
        decodes = (span for span in request.spans if span.part is Part.DECODE)
        for at, span in enumerate(decodes):
            yield Span(
                phase=Phase.DECODE if at else Phase.PREFILL,
                repetition=place,
                token=n_prompt + at - 1 if at else 0,
                n_tokens=1 if at else n_prompt,
                start_ns=span.start_ns,
                end_ns=span.end_ns,
            )

    # ---- the prompt --------------------------------------------------------------------------------------------------

    def _prompt(self, n_tokens: int, first: int) -> str:
        """Return a text of so many tokens that begins with one of the words; `MeasurementError` where none is found."""

        def words(n_words: int) -> str:
            """Return so many words."""
            return " ".join(islice(cycle(_WORDS), first % len(_WORDS), first % len(_WORDS) + n_words))

        text = words(bisect_right(range(1, n_tokens + 1), n_tokens, key=lambda n_words: self._n_tokens(words(n_words))))
        for _ in range(n_tokens):
            if text and self._n_tokens(text) == n_tokens:
                return text
            text = f"{text}{_FILLING}" if text else _FILLING.strip()
        raise MeasurementError(
            f"{self._plan.gguf_path}: no text of exactly {n_tokens} tokens was found for the cases of the binding"
        )

    def _n_tokens(self, text: str) -> int:
        return len(self._llama.tokenize(text.encode(), add_bos=True, special=True))

    # ---- spans -------------------------------------------------------------------------------------------------------

    def _wrap(self, owner: Any, name: str, part: Part) -> None:
        """Note each call of a method; a release that has no such method has no such part."""
        method = getattr(owner, name, None)
        if method is not None:
            setattr(owner, name, self._spanned(method, part))

    def _spanned(self, method: Callable[..., Any], part: Part) -> Callable[..., Any]:
        spans, now = self._spans, monotonic_ns

        @wraps(method)
        def spanned(*arguments: Any, **named: Any) -> Any:
            start_ns = now()
            try:
                return method(*arguments, **named)
            finally:
                spans.append((part, start_ns, now()))

        return spanned

    def _span_cost_ns(self) -> int:
        """Return what a span adds to a call."""

        def nothing() -> None:
            """Do nothing."""

        def timed(call: Callable[[], object]) -> int:
            start_ns = monotonic_ns()
            for _ in range(_N_EMPTY_SPANS):
                call()
            return monotonic_ns() - start_ns

        self._spans.clear()
        return max(0, timed(self._spanned(nothing, Part.PYTHON)) - timed(nothing)) // _N_EMPTY_SPANS


@contextmanager
def opened_binding(plan: LlamaPlan) -> Iterator[Binding]:
    """Load a plan's model by llama-cpp-python, with the recorder beneath it.

    The wheel has each library three times, as archives cannot hold links: the binding has to load the very file that
    the recorder's library is linked to, or there are two engines in the process.
    """
    engine = planned_engine(plan)
    recorder = BindingRecorder(load_engine_library(engine, Path(plan.cache_dir)), plan.n_threads)
    with work_folder() as folder:
        (folder / "libllama.so").symlink_to(engine.library("libllama"))
        name_engine(folder)
        yield Binding(plan, recorder)

"""What the passes of a model cost whose graph the engine says, for a forecast."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from perfsuite.errors import PerfsuiteError
from perfsuite.expectation.graph import KV_PADDING, Batch, Settings
from perfsuite.expectation.llama_workload import N_UBATCH, LlamaWorkload
from perfsuite.expectation.operators.tiling import padded
from perfsuite.expectation.requests.analytic import StepCosts, expanded
from perfsuite.expectation.requests.engine_passes import added, graph_cost, step_batches
from perfsuite.expectation.requests.subject import WEIGHT_TYPES, EngineSubject, Optimisations, cache_type
from perfsuite.experiments.said_graphs import engine_graphs
from perfsuite.measure.board.local_board import LocalBoard
from perfsuite.measure.model_tensors import with_engine_tensors
from perfsuite.records.events import Phase
from perfsuite.records.op_cost import PassCost
from perfsuite.workload.model_shape import ModelShape, ModelSpec
from perfsuite.workload.scenario import Scenario
from perfsuite.workload.weights import Weights, synthetic_weights


class SaidPasses:
    """The passes of one request, whose graphs this machine's engine is asked for once."""

    def __init__(
        self, subject: EngineSubject, optimisations: Optimisations, n_prompt: int, n_gen: int, n_draft: int, cache: Path
    ) -> None:
        _check(subject, optimisations)
        self._tile = optimisations.tile
        n_prompt = padded(n_prompt, self._tile)
        scenario = Scenario(name="forecast", n_prompt=n_prompt, n_gen=n_gen, source="given by its lengths")
        kv_type = cache_type(optimisations)
        variant = optimisations.variant
        workload = LlamaWorkload(
            weights=_weights(subject, optimisations, cache),
            scenario=scenario,
            settings=Settings(flash_attn=variant.fused if variant else True, type_k=kv_type, type_v=kv_type),
            n_ctx=padded(padded(n_prompt + n_gen + 2 * n_draft + 1, self._tile), KV_PADDING),
            n_ubatch=optimisations.chunk or N_UBATCH,
        )
        self.workload = _with_graphs(workload, self._batches(workload, n_draft), cache)

    def prefill(self, n_prompt: int) -> PassCost:
        """Cost the prompt, all its micro-batches in turn."""
        return added(map(self._pass, self.workload.batches(Phase.PREFILL)))

    def decode(self, n_past: int, n_steps: int, n_tokens: int = 1) -> StepCosts:
        """Cost `n_steps` steps of `n_tokens`, the first of which sees `n_past` positions and its own."""
        batches, which = step_batches(n_past, n_steps, n_tokens, tile=self._tile)
        return expanded(list(map(self._pass, batches)), which)

    def _pass(self, batch: Batch) -> PassCost:
        return graph_cost(self.workload.operators(batch))

    def _batches(self, workload: LlamaWorkload, n_draft: int) -> tuple[Batch, ...]:
        n_prompt, n_steps = workload.scenario.n_prompt, workload.scenario.n_gen + n_draft
        steps = (step_batches(n_prompt, n_steps, n_tokens, tile=self._tile)[0] for n_tokens in {1, 1 + n_draft})
        middle = workload.batches(Phase.DECODE)
        return (*workload.batches(Phase.PREFILL), *middle, *(batch for each in steps for batch in each))


def _check(subject: EngineSubject, optimisations: Optimisations) -> None:
    """Refuse what takes more than the engine's own graph of one sequence."""
    variant, name = optimisations.variant, subject.name
    refused = {
        "--batch": optimisations.n_sequences > 1,
        "--lora-rank": optimisations.inline_rank is not None,
        "--variant": variant is not None and variant.mla,
        "--quantization": isinstance(subject.model, Weights) and optimisations.quantization is not None,
    }
    if given := [option for option, is_given in refused.items() if is_given]:
        raise PerfsuiteError(f"{', '.join(given)}: not for {name}, whose graph the engine says as it is; leave it out")


def _weights(subject: EngineSubject, optimisations: Optimisations, cache: Path) -> Weights:
    model, variant = subject.model, optimisations.variant
    if isinstance(model, Weights):
        return model
    quantization = optimisations.quantization or (WEIGHT_TYPES[variant.weights] if variant else None)
    if quantization is None:
        raise PerfsuiteError(f"--quantization: missing; {subject.name} has no types of its own, expected one like q8_0")
    return synthetic_weights(_shape(subject.name, model, cache), quantization, cache_dir=cache)


def _shape(name: str, model: ModelShape | ModelSpec, cache: Path) -> ModelShape:
    if isinstance(model, ModelShape):
        return model
    return with_engine_tensors(model.shape(name), cache_dir=cache, wanted=model.wanted, unwanted=model.unwanted)


def _with_graphs(workload: LlamaWorkload, batches: tuple[Batch, ...], cache: Path) -> LlamaWorkload:
    from perfsuite.workload.synthetic import write_outline  # the gguf package is slow to import

    board = LocalBoard(cache_dir=cache)
    with TemporaryDirectory(prefix="perfsuite-") as folder:
        placed = workload
        if workload.weights.path is None:
            path = Path(folder) / "outline.gguf"
            write_outline(workload.weights.shape, workload.weights.tensor_types, path)
            placed = replace(workload, weights=replace(workload.weights, path=path, quantization=None))
        engine = board.facts().engine
        return replace(
            workload, engine_graphs=engine_graphs(placed, engine, board, models_dir=cache / "models", batches=batches)
        )

"""A model, a scenario and the engine's settings: what runs, and the graphs that it evaluates."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from perfsuite.errors import ArchitectureError, PerfsuiteError
from perfsuite.expectation.graph import KNOWN_GRAPHS, KV_PADDING, Batch, Operator, Settings, engine_graph
from perfsuite.expectation.graphs.place import Place
from perfsuite.expectation.speculation import Drafting
from perfsuite.records.events import TOKEN_PHASES, Phase
from perfsuite.workload.families import FAMILIES
from perfsuite.workload.projector import Projector
from perfsuite.workload.scenario import Scenario
from perfsuite.workload.weights import Weights


class GraphKey(NamedTuple):
    """What the shapes of a graph follow from."""

    n_tokens: int
    n_outputs: int
    #: Positions of the cache.
    n_kv: int
    #: Whether these are the first tokens of a text, before which recurrent states are cleared.
    is_first: bool


def graph_key(batch: Batch) -> GraphKey:
    """Return what the graph of a batch is known by."""
    return GraphKey(batch.n_tokens, batch.n_outputs, batch.n_kv, batch.n_used == batch.n_tokens)


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineGraphs:
    """The operators of some evaluations, as the engine lists them, read-only."""

    operators_by_key: Mapping[GraphKey, tuple[Operator, ...]]

    def operators(self, batch: Batch) -> tuple[Operator, ...]:
        """Return the operators of one evaluation; an ArchitectureError where the engine was not asked for it."""
        found = self.operators_by_key.get(graph_key(batch))
        if found is None:
            raise ArchitectureError(
                f"the engine was not asked for the graph of {batch.n_tokens} tokens, {batch.n_outputs} outputs and "
                f"{batch.n_kv} positions"
            )
        return found

    @property
    def n_vocab(self) -> int | None:
        """Logits of a token; None where no graph gives any."""
        last = (each.output for graph in self.operators_by_key.values() for each in graph if each.role == _LOGITS)
        return next((output.ne[0] for output in last), None)


_LOGITS = "result_output"


#: Tokens that the engine evaluates at once, its own default.
N_UBATCH = 512


@dataclass(frozen=True, slots=True, kw_only=True)
class LlamaWorkload:
    """A model, a scenario and the engine's settings: what one group of replicates runs."""

    weights: Weights
    scenario: Scenario
    settings: Settings
    #: Cells of the KV cache of a sequence.
    n_ctx: int
    n_ubatch: int
    #: Sequences that are generated side by side, a token of each in one decode step.
    n_sequences: int = 1
    #: Speculative decoding: a decode step is the pass of a round that verifies what a draft proposes.
    drafting: Drafting | None = None
    #: What encodes an image before each prompt; its embeddings are not read by the model.
    projector: Projector | None = None
    #: The operators that encode it, as the engine says them; None where it was not asked.
    image_graph: tuple[Operator, ...] | None = field(default=None, compare=False, repr=False)
    #: What the engine says of a model whose graph the suite cannot write itself; None where it was not asked.
    engine_graphs: EngineGraphs | None = field(default=None, compare=False, repr=False)

    @property
    def prefix(self) -> str:
        """The middle of every case id of this workload."""
        return f"{self.weights.name}/{self.scenario.name}"

    @property
    def is_analytical(self) -> bool:
        """Whether the suite itself writes the graph of this architecture, for any batch; it writes none that pools."""
        is_known = self.weights.known_architecture is not None and self.weights.gguf_architecture in KNOWN_GRAPHS
        return is_known and not self.weights.embeds

    @property
    def has_graph(self) -> bool:
        """Whether operators can be enumerated: from the suite's own graph, or from the engine's."""
        return self.is_analytical or self.engine_graphs is not None

    @property
    def n_vocab(self) -> int | None:
        """Logits of a token; None where that is not known."""
        if (known := self.weights.known_architecture) is not None:
            return known.n_vocab
        return None if self.engine_graphs is None else self.engine_graphs.n_vocab

    @property
    def prompt_phase(self) -> Phase:
        """The phase that reads a prompt."""
        return Phase.EMBED if self.weights.embeds else Phase.PREFILL

    @property
    def token_phases(self) -> tuple[Phase, ...]:
        """What follows each evaluation: nothing, where it gives no logits."""
        return () if self.weights.embeds else TOKEN_PHASES

    @property
    def graph_batches(self) -> tuple[Batch, ...]:
        """The evaluations whose graphs are asked for: those of each phase, and the first and the last step."""
        scenario = self.scenario
        ends = (scenario.n_depth + scenario.n_prompt + 1, scenario.n_ctx) if scenario.n_gen else ()
        steps = (self.step(end + self.n_draft) for end in ends)
        return (*(batch for phase in self.graph_phases() for batch in self.batches(phase)), *steps)

    @property
    def is_alone(self) -> bool:
        """Whether the model runs by itself: one sequence, without an adapter, a draft or a projector."""
        beside = (self.settings.lora_rank, self.drafting, self.projector)
        return self.n_sequences == 1 and all(each is None for each in beside)

    @property
    def n_draft(self) -> int:
        """Tokens that a draft proposes in a round; 0 without one."""
        return 0 if self.drafting is None else self.drafting.speculation.n_draft

    @property
    def draft(self) -> LlamaWorkload | None:
        """What the model of the draft runs: the same text, a token at a time."""
        if self.drafting is None or self.drafting.weights is None:
            return None
        settings = replace(self.settings, lora_rank=None)
        return replace(
            self,
            weights=self.drafting.weights,
            settings=settings,
            drafting=None,
            projector=None,
            image_graph=None,
            engine_graphs=None,
        )

    def with_draft(self, drafting: Drafting) -> LlamaWorkload:
        """Return the workload with a draft, whose last round may go beyond what is generated."""
        n_cells = self.scenario.n_ctx + drafting.speculation.n_draft
        return replace(self, drafting=drafting, n_ctx=-(-n_cells // KV_PADDING) * KV_PADDING)

    @property
    def middle_place(self) -> int:
        """The place of a text by which decode is taken: the step in the middle is the last one that begins by it.

        A round begins at one of the places before it, and what it sees is padded: half of the generation, whose length
        is mostly round, is the place from which all of these see the same.
        """
        before, n_gen = self.scenario.n_depth + self.scenario.n_prompt, self.scenario.n_gen
        return before + (n_gen // 2 if self.n_draft else (n_gen - 1) // 2)

    def occurrences(self, phase: Phase) -> int:
        """Return how often a phase comes in a run, on average."""
        tokens_per_step = 1.0 if self.drafting is None else self.drafting.speculation.tokens_per_round
        n_steps = round(self.scenario.n_gen / tokens_per_step)
        if phase in (Phase.DECODE, Phase.DRAFT):
            return n_steps
        n_prompts = self.n_sequences if self.scenario.n_prompt else 0
        if phase is Phase.ENCODE_IMAGE:
            return 0 if self.projector is None else 1
        if phase in TOKEN_PHASES:
            return n_prompts + n_steps * (self.n_sequences + self.n_draft)
        return n_prompts

    def batch(self, n_used: int, *, n_tokens: int = 1, n_outputs: int = 1, n_sequences: int = 1) -> Batch:
        """Return an evaluation after which the cache holds `n_used` tokens of a sequence; one token by default."""
        return Batch(
            n_tokens=n_tokens,
            n_outputs=n_outputs,
            n_used=n_used,
            n_ctx=self.n_ctx,
            n_ubatch=self.n_ubatch,
            n_sequences=n_sequences,
            n_caches=self.n_sequences,
        )

    def step(self, n_used: int) -> Batch:
        """Return a decode step after which the cache holds `n_used` tokens of a sequence; each token gives logits."""
        n_tokens = self.n_sequences * (1 + self.n_draft)
        return self.batch(n_used, n_tokens=n_tokens, n_outputs=n_tokens, n_sequences=self.n_sequences)

    def batches(self, phase: Phase) -> tuple[Batch, ...]:
        """Return the graph evaluations of one occurrence of a phase; decode is taken at its middle step.

        Of a prompt the last token gives logits, or every one an embedding.
        """
        scenario = self.scenario
        n_prompt, before = scenario.n_prompt, scenario.n_depth
        if phase is Phase.DECODE:
            return (self.step(self.middle_place + 1 + self.n_draft),)
        ends = ((start, min(start + self.n_ubatch, n_prompt)) for start in range(0, n_prompt, self.n_ubatch))
        gives_all = phase is Phase.EMBED
        return tuple(
            self.batch(before + end, n_tokens=end - start, n_outputs=end - start if gives_all else int(end == n_prompt))
            for start, end in ends
        )

    def operators(self, batch: Batch) -> tuple[Operator, ...]:
        """Return the operators of one evaluation."""
        if not self.is_analytical and self.engine_graphs is not None:
            return self.engine_graphs.operators(batch)
        return engine_graph(self.weights.architecture, self.weights.tensor_types, batch, self.settings)

    def place(self, batch: Batch) -> Place:
        """Return where the operators of an evaluation are written, outside the layers."""
        weights = self.weights
        return Place(
            architecture=weights.architecture,
            tensor_types=weights.tensor_types,
            batch=batch,
            settings=self.settings,
            n=batch.n_tokens,
        )

    def graph(self, phase: Phase) -> tuple[Operator, ...]:
        """Return the operators of one occurrence of a phase, all its batches in turn."""
        if phase is Phase.ENCODE_IMAGE:
            return self.image_graph or ()
        return tuple(operator for batch in self.batches(phase) for operator in self.operators(batch))

    @property
    def known_phases(self) -> tuple[Phase, ...]:
        """The phases whose operators can be enumerated."""
        of_image = () if self.image_graph is None else (Phase.ENCODE_IMAGE,)
        return (*of_image, *(self.graph_phases() if self.has_graph else ()))

    @property
    def recorded_phases(self) -> tuple[Phase, ...]:
        """The phases whose operators are known once they were recorded, and not before."""
        of_image = () if self.projector is None else (Phase.ENCODE_IMAGE,)
        return tuple(phase for phase in (*of_image, *self.graph_phases()) if phase not in self.known_phases)

    def graph_phases(self) -> tuple[Phase, ...]:
        """Return the phases of this scenario that evaluate the model's graphs."""
        lengths = {self.prompt_phase: self.scenario.n_prompt, Phase.DECODE: self.scenario.n_gen}
        return tuple(phase for phase, n_tokens in lengths.items() if n_tokens > 0)


def llama_workload(
    weights: Weights, scenario: Scenario, *, flash_attn: bool = True, type_k: str = "f16", type_v: str = "f16"
) -> LlamaWorkload:
    """Return a workload with the engine's usual settings; without flash attention where it is known to fail.

    A model of embeddings reads the scenario's prompt at once, and nothing comes before or after it.

    Raises PerfsuiteError: such a model has a scenario without a prompt, or the text is longer than any model's table of
    positions.
    """
    if weights.embeds:
        if not scenario.n_prompt:
            raise PerfsuiteError(f"{weights.name}: a model of embeddings reads prompts, and {scenario.name} has none")
        scenario = replace(scenario, n_gen=0, n_depth=0)
    n_positions = weights.shape.n_positions
    if n_positions is not None and scenario.n_ctx > n_positions:
        raise PerfsuiteError(f"{weights.name}: has {n_positions} positions, and {scenario.name} takes {scenario.n_ctx}")
    family = FAMILIES.get(weights.gguf_architecture)
    can_flash = family is None or family.flash_attention
    return LlamaWorkload(
        weights=weights,
        scenario=scenario,
        settings=Settings(flash_attn=can_flash and flash_attn, type_k=type_k, type_v=type_v),
        n_ctx=-(-scenario.n_ctx // KV_PADDING) * KV_PADDING,
        n_ubatch=max(N_UBATCH, scenario.n_prompt) if weights.embeds else N_UBATCH,
    )

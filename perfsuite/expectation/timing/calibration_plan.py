"""What a calibration measures: everything that forecasts may be asked for, or what one workload needs.

From small models of its own it learns what the engine adds to its operators. Most are architectures whose graph the
suite writes itself; those with states are models that are listed in files, and are run where the engine says their
graphs.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from perfsuite.expectation.llama_workload import LlamaWorkload, llama_workload
from perfsuite.expectation.op_rules import MEASURABLE, rule_of
from perfsuite.expectation.timing.engine_times import phase_operators
from perfsuite.expectation.timing.features import family, shape_cost, standing_in
from perfsuite.expectation.timing.grid import standard_shapes
from perfsuite.expectation.timing.operator_shape import OperatorShape
from perfsuite.workload.architecture import Architecture, MixtureOfExperts
from perfsuite.workload.catalog import calibration_models, find
from perfsuite.workload.ggml_types import GGML_TYPES
from perfsuite.workload.model_shape import ModelShape
from perfsuite.workload.quantization import quantizations
from perfsuite.workload.scenario import Scenario
from perfsuite.workload.weights import Weights, synthetic_weights

#: A cache of 32 MiB holds a fifth of 150 MB between two tokens, and hardly any of twice as much, as of most models.
#: Layers, width, width of the feed-forward block, heads, heads of the cache, vocabulary; with the quantisation.
_SIZES = (
    (36, 768, 2304, 12, 4, 24576, "q8_0"),
    (24, 1280, 3584, 20, 4, 32768, "q4_0"),
    (14, 896, 3072, 14, 14, 16384, "f16"),
    (16, 1536, 4608, 24, 8, 20480, "q4_k_m"),
)
#: The types of the models that are listed, in the order of their names.
_LISTED_TYPES = ("q4_k_m", "q8_0", "q8_0", "q4_0")

#: Which of them a quick calibration runs, with how many layers. All matrices have whole blocks of every type, and in
#: eight bits the weights are about as many as single operators are spread over. Fewer are found in a cache.
_QUICK = ((0, 10), (1, 4), (3, 3))


def reference_architectures() -> tuple[tuple[Architecture, str], ...]:
    """List the architectures, each with its quantisation; their weights exceed the caches of small machines."""
    base = find("smollm2-135m")
    dense = tuple(
        (
            replace(
                base,
                name=f"calibration-{n_embd}x{n_layers}",
                n_layers=n_layers,
                n_embd=n_embd,
                n_ff=n_ff,
                n_heads=n_heads,
                n_kv_heads=n_kv_heads,
                n_vocab=n_vocab,
            ),
            quantization,
        )
        for n_layers, n_embd, n_ff, n_heads, n_kv_heads, n_vocab, quantization in _SIZES
    )
    return (*dense, _with_experts())


def _with_experts() -> tuple[Architecture, str]:
    architecture = replace(
        find("qwen1.5-moe-a2.7b"),
        name="calibration-experts-1024x6",
        n_layers=6,
        n_embd=1024,
        n_heads=16,
        n_kv_heads=4,
        head_dim=64,
        v_head_dim=64,
        n_rot=64,
        n_vocab=16384,
        moe=MixtureOfExperts(n_experts=24, n_experts_used=3, n_ff_expert=768, n_ff_shared=1536),
    )
    return architecture, "q8_0"


def reference_models() -> tuple[tuple[Architecture | ModelShape, str], ...]:
    """List these, and the models with states; each with its quantisation."""
    return (*reference_architectures(), *zip(calibration_models(), _LISTED_TYPES, strict=True))


def reference_weights(*, cache_dir: Path) -> tuple[Weights, ...]:
    """Describe the synthetic weights of these models, which the catalogue does not have."""
    return tuple(
        synthetic_weights(model, quantization, cache_dir=cache_dir) for model, quantization in reference_models()
    )


def quick_architectures() -> tuple[Architecture, ...]:
    """List those of a quick calibration: a few of them with fewer layers."""
    architectures = [architecture for architecture, _ in reference_architectures()]
    return tuple(architectures[at].with_layers(n_layers) for at, n_layers in _QUICK)


def quick_weights(quantization: str, *, cache_dir: Path) -> tuple[Weights, ...]:
    """Describe the synthetic weights of these, in one quantisation."""
    return tuple(synthetic_weights(each, quantization, cache_dir=cache_dir) for each in quick_architectures())


#: Rounds by default, each in a fresh process and in another order: a neighbour who stays for seconds spoils no median.
N_ROUNDS = 3
#: Time for the repetitions of one operator in one round.
_BUDGET_NS = 15_000_000
#: Eight times a large cache, which then keeps few of them: of three times as many it keeps a third.
_SPREAD_BYTES = 256 << 20
#: Operators of so many rows compute for longer than they read, and are measured apart: what their parameters are spread
#: over is less.
MANY_ROWS = 32
#: The prompts of the compositions in turn, their generation, and how often a process runs both.
_PROMPTS = (96, 320)
_N_GEN = 12
_REPETITIONS = 3
#: How often a process is run at most until one was undisturbed.
_TRIES = 3

#: The same of a quick calibration: two rounds show what processes differ by.
_QUICK_ROUNDS = 2
_QUICK_REPETITIONS = 2
_QUICK_TRIES = 2
#: About the weights of its architectures.
_QUICK_SPREAD_BYTES = 96 << 20
#: Operators of one fit and one number of rows that it measures, of the workload and of the architectures each.
_QUICK_POINTS = 6
#: It leaves out what takes a tenth of a second or a gigabyte alone; the fit goes on from smaller ones.
_MOST_FLOPS = 10**10
_MOST_BYTES = 1 << 30
#: Rows of what is gathered from, or scattered to.
_STORED_ROWS = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibrationPlan:
    """What is measured in each round, and how often."""

    #: Operators alone.
    shapes: tuple[OperatorShape, ...]
    #: Architectures of the calibration's own, whole.
    compositions: tuple[LlamaWorkload, ...]
    n_rounds: int
    #: Processes of each of these in a round; what a process differs from the next by is more than in an operator alone.
    n_processes: int = 2
    #: How often a process runs the prompt and the generation of a composition.
    n_repetitions: int = _REPETITIONS
    #: Time for the repetitions of one operator in one round.
    budget_ns: int = _BUDGET_NS
    #: How often a process is run at most until one was undisturbed.
    n_tries: int = _TRIES
    #: Parameters that are read before one of them is read again, where an operator has as few rows as in decoding.
    spread_bytes: int = _SPREAD_BYTES
    is_quick: bool = False

    @property
    def contents(self) -> str:
        """Everything that is measured, by which a quick calibration is found again."""
        composed = ((each.weights.identity, each.scenario.n_prompt, each.settings) for each in self.compositions)
        return repr((self.shapes, *composed))

    @property
    def n_steps(self) -> int:
        """Processes, each a step of the progress."""
        n_operators = len({shape.n_tokens < MANY_ROWS for shape in self.shapes})
        return self.n_rounds * (n_operators + self.n_processes * len(self.compositions))


def standard_plan(types: Sequence[str], cache_dir: Path, *, n_rounds: int = N_ROUNDS) -> CalibrationPlan:
    """Plan a whole calibration for weights of these types; synthetic weights are kept in `cache_dir`."""
    return CalibrationPlan(
        shapes=standard_shapes(types), compositions=standard_compositions(cache_dir), n_rounds=n_rounds
    )


def standard_compositions(cache_dir: Path) -> tuple[LlamaWorkload, ...]:
    """List the models that a whole calibration runs, short and long prompts in turn."""
    return tuple(
        llama_workload(weights, _scenario(_PROMPTS[at % len(_PROMPTS)]))
        for at, weights in enumerate(reference_weights(cache_dir=cache_dir))
    )


def quick_plan(workload: LlamaWorkload, cache_dir: Path) -> CalibrationPlan:
    """Plan what the forecasts of one workload need: its operators, and smaller architectures of its types.

    The architectures run a prompt of as many rows, so that nothing is interpolated between numbers of rows.
    """
    scenario = _scenario(max(1, min(workload.scenario.n_prompt, workload.n_ubatch)))
    compositions = tuple(
        replace(llama_workload(weights, scenario), settings=replace(workload.settings, lora_rank=None))
        for weights in quick_weights(_quantization(workload.weights), cache_dir=cache_dir)
    )
    own = _chosen(_operators(each for each in (workload, workload.draft) if each is not None))
    others = _chosen(_operators(compositions))
    return CalibrationPlan(
        shapes=tuple(dict.fromkeys((*own, *others))),
        compositions=compositions,
        n_rounds=_QUICK_ROUNDS,
        n_processes=1,
        n_repetitions=_QUICK_REPETITIONS,
        n_tries=_QUICK_TRIES,
        spread_bytes=_QUICK_SPREAD_BYTES,
        is_quick=True,
    )


def _scenario(n_prompt: int) -> Scenario:
    source = "of the calibration's own"
    return Scenario(name=f"calibration-p{n_prompt}", n_prompt=n_prompt, n_gen=_N_GEN, source=source)


def _quantization(weights: Weights) -> str:
    """Return the type that most of the matrices have; what a mixture says by its name depends on their widths."""
    types = (name.lower() for name in weights.tensor_types.values())
    matrices = Counter(name for name in types if name in quantizations() and name != "f32")
    return matrices.most_common(1)[0][0] if matrices else "f32"


def _operators(workloads: Iterable[LlamaWorkload]) -> Iterator[OperatorShape]:
    """List the operators of all phases as they are measured alone, those that cannot be by what stands in for them."""
    for workload in workloads:
        for phase in workload.graph_phases():
            for shape in dict.fromkeys(phase_operators(workload, phase)):
                if shape.op not in MEASURABLE:
                    yield standing_in(shape, rule_of(shape.op).stand_in, "f32")
                elif _can_be_drawn(shape):
                    is_stored = shape.op in ("GET_ROWS", "SET_ROWS")
                    yield replace(shape, n_outer=_STORED_ROWS if is_stored else shape.n_outer)


def _can_be_drawn(shape: OperatorShape) -> bool:
    """Whether rows are whole blocks, which the mean of two sizes of heads may not be, of a type that weights have."""
    kind = GGML_TYPES[shape.type.upper()]
    return kind.is_weight and kind.fits(shape.n_inner)


def _chosen(shapes: Iterable[OperatorShape]) -> Iterator[OperatorShape]:
    """Choose a few of each fit and number of rows, from the smallest to the largest that is not too large."""
    groups: dict[tuple[tuple[str, str], int], list[OperatorShape]] = defaultdict(list)
    for shape in dict.fromkeys(shapes):
        groups[family(shape), shape.n_tokens].append(shape)
    for members in groups.values():
        members.sort(key=lambda shape: shape_cost(shape).moved_bytes)
        small = [shape for shape in members if _is_small(shape)] or members[:1]
        yield from (small[at] for at in _spread(len(small), _QUICK_POINTS))


def _is_small(shape: OperatorShape) -> bool:
    cost = shape_cost(shape)
    return cost.flops <= _MOST_FLOPS and cost.moved_bytes <= _MOST_BYTES


def _spread(n_members: int, n_chosen: int) -> Iterator[int]:
    if n_members <= n_chosen:
        yield from range(n_members)
    else:
        yield from (round(at * (n_members - 1) / (n_chosen - 1)) for at in range(n_chosen))

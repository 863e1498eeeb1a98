"""What a worker is asked to do, and how its records come back: both as MessagePack."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, ClassVar

from perfsuite import __version__
from perfsuite.errors import MeasurementError
from perfsuite.expectation.timing.features import lone_operator
from perfsuite.expectation.timing.operator_shape import OperatorShape
from perfsuite.records.call_trace import TracedFunction
from perfsuite.records.codec import Amount, Number, Positive, from_plain, pack, shown, unpack

#: Raised whenever a field of a plan or a record changes its meaning.
SCHEMA = 3


_ONE_VERSION = "use one version on both sides"

#: The kinds of plans by the name of their task.
_TASKS: dict[str, type[Plan]] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What a worker is asked to do."""

    #: What plans and records of this kind are called.
    task: ClassVar[str]

    def __init_subclass__(cls) -> None:
        """Let a plan be read by the name of its task."""
        _TASKS[cls.task] = cls

    def arguments(self) -> dict[str, Any]:
        """Return what a worker is given: the fields, and what follows from them."""
        return asdict(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class EbpfPlan:
    """The eBPF recorder beside a run: it is attached to the worker after the warm-up."""

    #: The privileged helper program, and where its log goes.
    helper: str
    log_path: str
    #: A `TraceLevel`.
    levels: int
    #: ``ring`` or ``perf``.
    buffer: str = "ring"
    floor_tokens_per_s: Amount | None = None
    #: Names of counters; without any those that the machine has.
    counters: tuple[str, ...] = ()
    #: Whether the kernel keeps account of the probes' own time, which costs some more.
    statistics: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class LlamaPlan(Plan):
    """One replicate of llama.cpp: load, warm up, run a prompt and a generation."""

    task = "llama"
    gguf_path: str
    #: Directory of llama.cpp's libraries, and the build that the parent found there.
    library_dir: str
    engine_build_id: str
    #: Where the compiled native library is kept.
    cache_dir: str
    n_threads: int
    n_prompt: int
    n_gen: int
    n_depth: int = 0
    n_repetitions: int = 1
    #: Lengths of the prompts that the process runs one after the other; without any it runs `n_prompt`.
    prompt_lengths: tuple[int, ...] = ()
    n_batch: int = 512
    n_ubatch: int = 512
    flash_attn: bool = True
    type_k: str = "f16"
    type_v: str = "f16"
    #: Whether the context gives embeddings of a prompt, and no logits.
    embeds: bool = False
    #: Whether layers with a sliding window keep all positions in the cache.
    swa_full: bool = True
    #: An adapter in GGUF, applied at scale 1.
    lora_path: str | None = None
    #: Sequences that are generated side by side, a token of each in one evaluation.
    n_sequences: int = 1
    #: Tokens that a draft proposes in a round, with the chance that each passes; 0 for no speculative decoding.
    n_draft: int = 0
    acceptance_ratio: Amount = 0.0
    #: The model of the draft; None searches the text itself.
    draft_path: str | None = None
    #: The projector of a vision model, and the pixels of a side of the image that it encodes before each prompt.
    mmproj_path: str | None = None
    image_size: int = 0
    n_gpu_layers: int = 0
    #: A backend of ggml's in a library of its own, beside those that the engine was built with.
    backend_library: str | None = None
    recorder: str = "callback"
    #: For the ``groups`` recorder, of a prompt and of a decode step: by node, whether it ends a group (1) or not (0).
    group_ends: tuple[tuple[int, ...], tuple[int, ...]] = ((), ())
    #: Whether each thread gets a processor of its own, where there are as many threads as processors.
    binds_threads: bool = True
    seed: int = 0
    #: Draws where the engine's buffers come to lie in this process; 0 leaves it to what was allocated before.
    layout_seed: int = 0
    #: Slowdowns for certifying a device and for tests: of an operator, and of whole phases.
    inject_op: str | None = None
    inject_ratio: Number = 0.0
    inject_phases: tuple[str, ...] = ()
    inject_phase_ratio: Number = 0.0
    #: Where a local socket offers records while the run goes on; its folder is the user's alone.
    live_socket: str | None = None
    #: Who traces the process from outside, if anybody does.
    ebpf: EbpfPlan | None = None

    @property
    def n_ctx(self) -> int:
        """Context length in tokens: what each sequence needs, in steps of 256 as llama.cpp pads it."""
        longest = max(self.prompt_lengths, default=self.n_prompt)
        return -(-(self.n_depth + longest + self.n_gen + self.n_draft) // 256) * 256 * self.n_sequences

    @property
    def one_token(self) -> LlamaPlan:
        """The plan of a turn's warm-up: it streams the weights and wakes the threads, which is enough."""
        return replace(self, n_prompt=min(self.n_prompt, 1), n_depth=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphsPlan(Plan):
    """The graphs that llama.cpp would compute, read from the model's metadata; nothing is measured."""

    task = "graphs"
    llama: LlamaPlan
    #: Of each evaluation: tokens, how many of them give logits, and positions of the cache.
    batches: tuple[tuple[int, int, int], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageGraphPlan(Plan):
    """The graph by which a projector would encode an image; nothing is measured."""

    task = "image_graph"
    llama: LlamaPlan


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnsPlan(Plan):
    """One replicate of llama.cpp that shares the device with another: it runs a repetition whenever it is asked to."""

    task = "turns"
    llama: LlamaPlan


@dataclass(frozen=True, slots=True, kw_only=True)
class BindingPlan(Plan):
    """One replicate of llama.cpp beneath llama-cpp-python, which takes turns as that of a `TurnsPlan`."""

    task = "binding"
    llama: LlamaPlan
    #: Whether the sentinels run at the end, which pairs have no use for.
    has_sentinels: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class StepsPlan(Plan):
    """One replicate of llama.cpp that is led line by line."""

    task = "steps"
    llama: LlamaPlan
    #: The OpenCL layer that the environment brings in, where its functions are called.
    layer_library: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class OverheadPlan(Plan):
    """Pairs of one plain and one recorded context in one process."""

    task = "overhead"
    llama: LlamaPlan
    phase: str
    n_pairs: int


@dataclass(frozen=True, slots=True, kw_only=True)
class EbpfOverheadPlan(Plan):
    """Pairs of runs in one process, one with the eBPF recorder's probes attached and one without."""

    task = "ebpf_overhead"
    llama: LlamaPlan
    n_pairs: int


@dataclass(frozen=True, slots=True, kw_only=True)
class UprobePlan(Plan):
    """One replicate of llama.cpp with kernel probes on the functions that the driver calls."""

    task = "uprobes"
    llama: LlamaPlan
    #: Names of `TracedFunction`.
    functions: tuple[str, ...] = tuple(function.value for function in TracedFunction)


@dataclass(frozen=True, slots=True, kw_only=True)
class DuplicationPlan(Plan):
    """The suite's own OpenCL kernels, each alone and followed by duplicates of itself."""

    task = "duplication"
    case_ids: tuple[str, ...]
    platform: str | None
    n_rounds: int
    #: Time for the rounds of one kernel, which bounds the number of duplicates.
    budget_ns: int
    seed: int
    log_dir: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineDuplicationPlan(Plan):
    """The engine's OpenCL kernels, each duplicated by the layer within an evaluation."""

    task = "engine_duplication"
    llama: LlamaPlan
    #: The OpenCL layer that the environment brings in, and where the environment says that its log goes.
    layer_library: str
    log_dir: str
    #: ``prefill`` and ``decode``; of each the longest kernels of `least_ns` or more.
    phases: tuple[str, ...]
    n_kernels: int
    least_ns: int
    n_rounds: int
    #: As in a `DuplicationPlan`.
    budget_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelPlan(Plan):
    """One replicate of the OpenCL kernels, or all pairs of a comparison of them: a round is a pair."""

    task = "kernels"
    case_ids: tuple[str, ...]
    platform: str | None
    #: Launches of a kernel in a round at most, and rounds at most; these end with the time, verifying included.
    n_repetitions: int
    n_rounds: int = 1
    budget_ns: int
    #: Draws the inputs.
    seed: int
    log_dir: str
    #: Threads of the sentinels.
    n_threads: int
    #: Other sources, with which the suite's own take turns, and what draws which of the two is first.
    old_kernels_dir: str | None = None
    order_seed: int = 0
    #: A folder of this run in which processes keep what they have built for those after them.
    built_dir: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbePlan(Plan):
    """The processor's ceilings: one replicate of the probes, or a survey of several numbers of threads.

    A survey is a ladder of working sets, fine for `n_threads` and coarse for the others, and all types of number.
    """

    task = "probes"
    cache_dir: str
    n_threads: int
    budget_ms: int
    #: Those of a survey.
    thread_counts: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenClCeilingsPlan(Plan):
    """All ceilings of an OpenCL device."""

    task = "opencl_ceilings"
    platform: str | None
    budget_ms: int
    log_dir: str


@dataclass(frozen=True, slots=True, kw_only=True)
class IndependentPlan(Plan):
    """What NumPy reaches, which is a check of the processor's ceilings; the environment says on how many threads."""

    task = "independent"
    n_threads: int
    working_set_bytes: int
    budget_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorsPlan(Plan):
    """One round of a calibration: single operators in the order in which they are given."""

    task = "operators"
    library_dir: str
    engine_build_id: str
    cache_dir: str
    n_threads: int
    shapes: tuple[OperatorShape, ...]
    #: Time for the repetitions of each.
    budget_ns: int
    #: Parameters that are read before one of them is read again.
    spread_bytes: int
    #: As in a `LlamaPlan`.
    binds_threads: bool = True

    def arguments(self) -> dict[str, Any]:
        """Return the fields, and the tensors of each operator."""
        return {**asdict(self), "alone": [asdict(lone_operator(shape)) for shape in self.shapes]}


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorsPlan(Plan):
    """The tensors that the engine wants of a model, which need not exist."""

    task = "tensors"
    library_dir: str
    engine_build_id: str
    cache_dir: str
    #: A GGUF of metadata alone.
    header_path: str
    #: Kinds of tensors, with a ``*`` for the number of a layer: optional ones that are to be there, and others not.
    wanted: tuple[str, ...] = ()
    unwanted: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ShapesPlan(Plan):
    """One subject that measures operations at whatever shapes it is asked for, until nobody asks any more."""

    task = "shapes"
    #: A `Subject`.
    subject: str
    n_threads: int
    log_dir: str
    #: Draws the inputs.
    seed: int = 0
    #: Of the OpenCL device.
    platform: str | None = None
    #: Where the suite's own kernels are read, if not from the package.
    kernels_dir: str | None = None
    #: As in a `LlamaPlan`; for ggml's operators only.
    library_dir: str = ""
    engine_build_id: str = ""
    cache_dir: str = ""
    backend_library: str | None = None
    binds_threads: bool = False
    #: Of the OpenCL device that ggml runs on, and what else must be equal for two runs to be comparable.
    n_compute_units: int | None = None
    fingerprint: tuple[tuple[str, str], ...] = ()
    #: Longest that the process may be silent at one step.
    step_limit_s: Positive = 300.0


@dataclass(frozen=True, slots=True, kw_only=True)
class DevicesPlan(Plan):
    """List the OpenCL devices; in a process of its own, for a broken driver may crash."""

    task = "devices"
    platform: str | None


def task_of(plan: Plan) -> str:
    """Return the name of the task that a plan is for."""
    return plan.task


def dump_plan(plan: Plan) -> bytes:
    """Pack a plan, with the schema and the suite's version that its reader must match."""
    return pack({"schema": SCHEMA, "suite_version": __version__, "task": task_of(plan), "arguments": plan.arguments()})


def load_plan(content: bytes) -> Plan:
    """Read a plan; another schema, suite version or task is refused with a `MeasurementError`."""
    try:
        plain = unpack(content)
    except ValueError as error:
        raise MeasurementError(f"the plan cannot be read ({error}); it was cut short") from error
    _check_header(plain, "plan", "arguments")
    return from_plain(plain["arguments"], _TASKS[plain["task"]], "plan", MeasurementError, _ONE_VERSION)


def dump_record(task: str, payload: Mapping[str, Any]) -> bytes:
    """Pack what a worker measured."""
    return pack({"schema": SCHEMA, "suite_version": __version__, "task": task, "payload": dict(payload)})


def load_record(content: bytes, task: str) -> dict[str, Any]:
    """Unpack a worker's payload; a record that is cut, or made by another suite, is refused."""
    try:
        plain = unpack(content)
    except ValueError as error:
        raise MeasurementError(f"the worker's record cannot be read ({error}); it was cut short") from error
    _check_header(plain, "record", "payload")
    if plain["task"] != task:
        raise MeasurementError(f"the worker's record is of task '{plain['task']}', the plan was for '{task}'")
    payload: dict[str, Any] = plain["payload"]
    return payload


def _check_header(plain: Any, what: str, holds: str) -> None:
    if not isinstance(plain, dict) or plain.get("schema") != SCHEMA:
        seen = plain.get("schema") if isinstance(plain, dict) else type(plain).__name__
        raise MeasurementError(f"{what} has schema {seen!r}, this suite reads {SCHEMA}; {_ONE_VERSION}")
    if plain.get("suite_version") != __version__:
        raise MeasurementError(
            f"{what} was made by perfsuite {plain.get('suite_version')}, this is {__version__}; "
            "install the same version on both sides"
        )
    if plain.get("task") not in list(_TASKS):
        raise MeasurementError(f"{what} names the task {plain.get('task')!r}; known are {', '.join(sorted(_TASKS))}")
    if not isinstance(plain.get(holds), dict):
        raise MeasurementError(f"{what}: {holds} is {shown(plain.get(holds))}, expected an object; {_ONE_VERSION}")


#: Longest that work without a forecast may take: OpenCL compiles for tens of seconds, and emulators are slow.
WORKER_LIMIT_S = 600.0

#: With a forecast: so many times that, and at least so long, for a process that starts and reads its model.
FORECAST_RATIO, LEAST_LIMIT_S = 20.0, 30.0


def forecast_limit_s(forecast_s: float | None) -> float:
    """Return the longest that a worker may take whose work is forecast; None is no forecast."""
    return WORKER_LIMIT_S if not forecast_s else max(LEAST_LIMIT_S, FORECAST_RATIO * forecast_s)


def limit_text(limit_s: float) -> str:
    """Say where a limit comes from, for messages."""
    if limit_s == WORKER_LIMIT_S or limit_s < LEAST_LIMIT_S:
        return f"its limit is {limit_s:.0f} s"
    return f"its limit is {limit_s:.0f} s, {FORECAST_RATIO:g} times its forecast and at least {LEAST_LIMIT_S:g} s"

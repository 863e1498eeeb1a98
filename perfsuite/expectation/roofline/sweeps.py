"""The sweeps: series of workloads in which one thing changes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from types import MappingProxyType
from typing import Any

from perfsuite.errors import PerfsuiteError, meant
from perfsuite.expectation.llama_workload import LlamaWorkload, llama_workload
from perfsuite.workload.catalog import names
from perfsuite.workload.ggml_types import is_quantized
from perfsuite.workload.gguf_metadata import unknown_architecture
from perfsuite.workload.model_shape import check_generates
from perfsuite.workload.scenario import find_scenario, scenario_names
from perfsuite.workload.weights import resolve


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepSubject:
    """What sweeps vary around."""

    #: A name of the catalogue such as ``smollm2-135m-q8_0``, or the path of a GGUF.
    weights: str
    n_threads: int
    #: What the sweep of threads goes through.
    thread_counts: tuple[int, ...]
    #: Whether lengths are those of real use instead of such as run in seconds.
    is_long: bool
    #: Where synthetic weights are kept.
    cache_dir: Path

    def workload(
        self,
        scenario: str,
        *,
        architecture: str | None = None,
        quantization: str | None = None,
        flash_attn: bool = True,
        type_kv: str = "f16",
    ) -> LlamaWorkload:
        """Return one workload of a sweep, the subject's own except what is given."""
        weights = resolve(self.weights, cache_dir=self.cache_dir)
        if architecture or quantization:
            name = f"{architecture or self.architecture}-{quantization or self.quantization}"
            weights = resolve(name, cache_dir=self.cache_dir)
        if weights.known_architecture is None:  # its work cannot be counted: said before anything is measured
            raise unknown_architecture(self.weights, weights.gguf_architecture)
        check_generates(weights.shape, f"--model={self.weights}")
        return llama_workload(weights, find_scenario(scenario), flash_attn=flash_attn, type_k=type_kv, type_v=type_kv)

    @property
    def architecture(self) -> str:
        """The architecture's name in the catalogue.

        Raises PerfsuiteError: the weights are a given file, which has one depth and one precision.
        """
        weights = resolve(self.weights, cache_dir=self.cache_dir)
        return weights.name.removesuffix(f"-{self.quantization}")

    @property
    def quantization(self) -> str:
        """The quantisation's name; of a given file the same PerfsuiteError."""
        weights = resolve(self.weights, cache_dir=self.cache_dir)
        if weights.quantization is None:
            raise PerfsuiteError(
                f"--model={self.weights}: a file has one depth, attention and precision; for sweeps of these name "
                "weights of the catalogue, such as smollm2-135m-q8_0"
            )
        return weights.quantization


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepPoint:
    """One workload of a sweep, and its place in it."""

    sweep: str
    setting: str
    value: float | None
    workload: LlamaWorkload
    n_threads: int


#: Depths in layers. *Source*: RooflineBench, depth 2 to 64.
DEPTHS = (2, 4, 8, 16, 32, 64)
QUANTIZATIONS = ("f16", "q8_0", "q4_k_m")
ATTENTIONS = ("mha", "gqa", "mla", "mla-absorbed")
KV_TYPES = ("f32", "f16", "q8_0", "q4_0")
#: Routed architectures, cut in depth so that they load in seconds.
EXPERTS = ("qwen1.5-moe-a2.7b-l2", "deepseek-v2-lite-l3")

#: What stands for a sweep where nothing varies.
BASE = "base"

_LENGTHS, _LONG_LENGTHS = (16, 32, 64, 128, 256, 512), (1024, 2048, 4096)
_EXPERT_LENGTHS = (1, 4, 16, 64, 256)
#: What is asked where the context is to count.
_DEEP = {"scenario": "p128-g24-d1024"}


#: One place of a sweep: its label, its number where it has one, and what is asked of `SweepSubject.workload`.
_Place = tuple[str, float | None, dict[str, Any]]


def base_point(subject: SweepSubject, scenario: str) -> SweepPoint:
    """Return the subject itself, which no sweep varies."""
    workload = subject.workload(scenario)
    return SweepPoint(sweep=BASE, setting=scenario, value=None, workload=workload, n_threads=subject.n_threads)


def _depths(subject: SweepSubject) -> Iterator[_Place]:
    own = subject.architecture
    full = own if own in names() else own.rpartition("-l")[0]
    for n_layers in DEPTHS:
        yield str(n_layers), n_layers, {"scenario": "p128-g24", "architecture": f"{full}-l{n_layers}"}


def _experts(_: SweepSubject) -> Iterator[_Place]:
    for architecture, n_prompt in product(EXPERTS, _EXPERT_LENGTHS):
        asked = {"scenario": f"p{n_prompt}-g16", "architecture": architecture, "quantization": "q4_0"}
        yield f"{architecture.partition('-')[0]} {n_prompt}", n_prompt, asked


def _attentions(subject: SweepSubject) -> Iterator[_Place]:
    """Vary attention at equal parameter count, all without flash attention, which MLA through PLM has not."""
    size = "1.5b" if subject.is_long else "135m"
    for attention in ATTENTIONS:
        yield attention, None, {**_DEEP, "architecture": f"attention-{attention}-{size}", "flash_attn": False}


#: The sweeps by name; docs/roofline.md says what each varies.
SWEEPS: Mapping[str, Callable[[SweepSubject], Iterable[_Place]]] = MappingProxyType(
    {
        "scenario": lambda subject: (
            (name, None, {"scenario": name}) for name in scenario_names() if name.endswith("-long") is subject.is_long
        ),
        "length": lambda subject: (
            (str(n), n, {"scenario": f"p{n}-g16"}) for n in (*_LENGTHS, *_LONG_LENGTHS * subject.is_long)
        ),
        "depth": _depths,
        "precision": lambda subject: (
            (name, None, {"scenario": "silo-long" if subject.is_long else "silo", "quantization": name})
            for name in QUANTIZATIONS
        ),
        "moe": _experts,
        "attention": _attentions,
        "kv": lambda _: ((type_kv, None, {**_DEEP, "type_kv": type_kv}) for type_kv in KV_TYPES),
        "flash": lambda _: ((name, None, {**_DEEP, "flash_attn": name == "on"}) for name in ("on", "off")),
        "threads": lambda subject: ((str(n), n, {"scenario": "p128-g24"}) for n in subject.thread_counts),
    }
)


def sweep_points(sweeps: tuple[str, ...], subject: SweepSubject) -> tuple[SweepPoint, ...]:
    """Return the workloads of some sweeps.

    Raises PerfsuiteError: a sweep is unknown, the subject generates nothing, or one of its workloads cannot be had from
    the catalogue.
    """
    for name in sweeps:
        if name not in SWEEPS:
            accepted = ", ".join(SWEEPS) + meant(name, SWEEPS)
            raise PerfsuiteError(f"sweep {name!r} is unknown; accepted are {accepted}")
    check_generates(resolve(subject.weights, cache_dir=subject.cache_dir).shape, f"--model={subject.weights}")
    return tuple(_point(name, subject, *each) for name in dict.fromkeys(sweeps) for each in SWEEPS[name](subject))


def _point(sweep: str, subject: SweepSubject, setting: str, value: float | None, asked: dict[str, Any]) -> SweepPoint:
    """Return a point, or refuse one that needs flash attention of an architecture without."""
    workload = subject.workload(**asked)
    # The engine quantises the KV cache only with flash attention.
    needs_flash = (sweep == "flash" and asked["flash_attn"]) or (sweep == "kv" and is_quantized(asked["type_kv"]))
    if needs_flash and not workload.settings.flash_attn:
        raise PerfsuiteError(
            f"--model={subject.weights}: its architecture has no flash attention, which sweep {sweep!r} needs; "
            "leave the sweep out, or name other weights"
        )
    n_threads = int(value) if sweep == "threads" and value else subject.n_threads
    return SweepPoint(sweep=sweep, setting=setting, value=value, workload=workload, n_threads=n_threads)

"""The sweeps: series of workloads in which one thing changes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from perfsuite.errors import PerfsuiteError
from perfsuite.expectation.cases import LlamaWorkload
from perfsuite.expectation.roofline.sweep_subject import SweepSubject
from perfsuite.workload.catalog import names
from perfsuite.workload.ggml_types import is_quantized
from perfsuite.workload.scenario import scenario_names


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


def base_point(subject: SweepSubject, scenario: str) -> SweepPoint:
    """Return the subject itself, which no sweep varies."""
    return _point(BASE, scenario, None, subject, subject.workload(scenario))


def _scenarios(subject: SweepSubject) -> Iterator[SweepPoint]:
    for name in [each for each in scenario_names() if each.endswith("-long") is subject.is_long]:
        yield _point("scenario", name, None, subject, subject.workload(name))


def _lengths(subject: SweepSubject) -> Iterator[SweepPoint]:
    for n_prompt in (*_LENGTHS, *(_LONG_LENGTHS if subject.is_long else ())):
        yield _point("length", str(n_prompt), n_prompt, subject, subject.workload(f"p{n_prompt}-g16"))


def _depths(subject: SweepSubject) -> Iterator[SweepPoint]:
    own = subject.architecture
    full = own if own in names() else own.rpartition("-l")[0]
    for n_layers in DEPTHS:
        workload = subject.workload("p128-g24", architecture=f"{full}-l{n_layers}")
        yield _point("depth", str(n_layers), n_layers, subject, workload)


def _precisions(subject: SweepSubject) -> Iterator[SweepPoint]:
    for quantization in QUANTIZATIONS:
        workload = subject.workload("silo-long" if subject.is_long else "silo", quantization=quantization)
        yield _point("precision", quantization, None, subject, workload)


def _experts(subject: SweepSubject) -> Iterator[SweepPoint]:
    for architecture in EXPERTS:
        for n_prompt in _EXPERT_LENGTHS:
            workload = subject.workload(f"p{n_prompt}-g16", architecture=architecture, quantization="q4_0")
            yield _point("moe", f"{architecture.partition('-')[0]} {n_prompt}", n_prompt, subject, workload)


def _attentions(subject: SweepSubject) -> Iterator[SweepPoint]:
    """Vary attention at equal parameter count, all without flash attention, which MLA through PLM has not."""
    size = "1.5b" if subject.is_long else "135m"
    for attention in ATTENTIONS:
        architecture = f"attention-{attention}-{size}"
        workload = subject.workload("p128-g24-d1024", architecture=architecture, flash_attn=False)
        yield _point("attention", attention, None, subject, workload)


def _kv_types(subject: SweepSubject) -> Iterator[SweepPoint]:
    for type_kv in KV_TYPES:
        workload = subject.workload("p128-g24-d1024", type_kv=type_kv)
        if is_quantized(type_kv):
            _check_flash("kv", subject, workload)
        yield _point("kv", type_kv, None, subject, workload)


def _flash(subject: SweepSubject) -> Iterator[SweepPoint]:
    for is_on in (True, False):
        workload = subject.workload("p128-g24-d1024", flash_attn=is_on)
        if is_on:
            _check_flash("flash", subject, workload)
        yield _point("flash", "on" if is_on else "off", None, subject, workload)


def _check_flash(sweep: str, subject: SweepSubject, workload: LlamaWorkload) -> None:
    """Refuse what needs flash attention of an architecture without: the engine quantises the KV cache only with it."""
    if not workload.settings.flash_attn:
        raise PerfsuiteError(
            f"--model={subject.weights}: its architecture has no flash attention, which sweep {sweep!r} needs; "
            "leave the sweep out, or name other weights"
        )


def _threads(subject: SweepSubject) -> Iterator[SweepPoint]:
    for n_threads in subject.thread_counts:
        workload = subject.workload("p128-g24")
        yield SweepPoint(
            sweep="threads", setting=str(n_threads), value=n_threads, workload=workload, n_threads=n_threads
        )


def _point(sweep: str, setting: str, value: float | None, subject: SweepSubject, workload: LlamaWorkload) -> SweepPoint:
    return SweepPoint(sweep=sweep, setting=setting, value=value, workload=workload, n_threads=subject.n_threads)


#: The sweeps by name; docs/roofline.md says what each varies.
SWEEPS: Mapping[str, Callable[[SweepSubject], Iterator[SweepPoint]]] = MappingProxyType(
    {
        "scenario": _scenarios,
        "length": _lengths,
        "depth": _depths,
        "precision": _precisions,
        "moe": _experts,
        "attention": _attentions,
        "kv": _kv_types,
        "flash": _flash,
        "threads": _threads,
    }
)


def sweep_points(sweeps: tuple[str, ...], subject: SweepSubject) -> tuple[SweepPoint, ...]:
    """Return the workloads of some sweeps.

    Raises PerfsuiteError: A sweep is unknown, or one of its workloads cannot be had from the catalogue.
    """
    for name in sweeps:
        if name not in SWEEPS:
            raise PerfsuiteError(f"sweep {name!r} is unknown; accepted are {', '.join(SWEEPS)}")
    return tuple(point for name in dict.fromkeys(sweeps) for point in SWEEPS[name](subject))

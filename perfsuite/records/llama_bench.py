"""One test of llama-bench: what was run, on what, and how long each repetition took."""

from __future__ import annotations

import re
import statistics
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from perfsuite.errors import PerfsuiteError
from perfsuite.records.codec import LARGEST
from perfsuite.units import NS_PER_S

#: What a field of llama-bench's output can be.
FieldValue = str | int | float

#: llama.cpp numbers tokens by 32 bits.
_MOST_TOKENS = 2**31 - 1

#: What older releases did not write, and what they did instead.
_SINCE_ADDED: Mapping[str, FieldValue] = {"build_number": 0, "gpu_info": "", "n_depth": 0, "flash_attn": 0}
#: What they wrote for ``backends``: a truth value a backend, of which the first stands for all.
_OLDER_BACKENDS: Mapping[str, str] = {
    "cuda": "CUDA",
    "opencl": "OpenCL",
    "vulkan": "Vulkan",
    "kompute": "Kompute",
    "metal": "Metal",
    "sycl": "SYCL",
    "gpu_blas": "GPU BLAS",
    "blas": "BLAS",
}
#: What tells two runs of one test apart and is no setting: when it ran, what it was built from, what files are called,
#: and what `BenchRun` has under another name.
_NO_SETTING = frozenset(
    {
        *("build_commit", "build_number", "test_time", "model_filename", "n_prompt", "n_gen", "n_depth", "test"),
        *("cpu_info", "gpu_info", "backends", "rpc", "f16_kv", *_OLDER_BACKENDS),
    }
)
#: What llama-bench sets where nobody asks, of fields that not every release has; of others 0, nothing and auto.
_UNASKED: Mapping[str, str] = {
    "cpu_mask": "0x0",
    "poll": "50",
    "split_mode": "layer",
    "tensor_buft_overrides": "none",
    "defrag_thold": "-1",
    "use_mmap": "1",
    "repack": "1",
    "mul_mat_q": "1",
}
_UNASKED_OTHERS = ("", "0", "auto")
#: The file type at the end of ``model_type``, which has it in front of other words in some releases.
_FILE_TYPE = re.compile(r"\b(?:[IT]?Q\d|B?F16|F32|(?:MX|NV)FP4)[^()]*")


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchRun:
    """A row of llama-bench's output, the fields under its own names.

    *Source*: ``struct test`` of ``tools/llama-bench/llama-bench.cpp`` in llama.cpp, as in llama-cpp-python 0.3.36.
    """

    build_commit: str
    build_number: int
    cpu_info: str
    gpu_info: str
    backends: str
    #: As it was given with ``-m``.
    model_filename: str
    #: llama.cpp's words: architecture, size class and file type, such as ``llama 1B Q4_0``.
    model_type: str
    #: Bytes of all tensors.
    model_size: int
    #: Weights of all tensors.
    model_n_params: int
    n_batch: int
    n_ubatch: int
    n_threads: int
    type_k: str
    type_v: str
    n_gpu_layers: int
    #: 1 on, 0 off, -1 where llama.cpp chose.
    flash_attn: int
    n_prompt: int
    n_gen: int
    #: Tokens that the cache held before.
    n_depth: int
    #: ISO 8601 in UTC, to the second.
    test_time: str
    #: Mean and standard deviation of a repetition, and of its tokens per second.
    avg_ns: int
    stddev_ns: int
    avg_ts: float
    stddev_ts: float
    #: One time a repetition, of all ``n_prompt + n_gen`` tokens; empty from SQL, which has no such column.
    samples_ns: tuple[int, ...]
    #: Whatever else a release writes, by name.
    others: tuple[tuple[str, FieldValue], ...] = ()

    @property
    def test(self) -> str:
        """llama-bench's name of the test: ``pp512``, ``tg128``, ``pp512+tg128``, with ``@d1024`` at a depth."""
        parts = [f"{kind}{count}" for kind, count in (("pp", self.n_prompt), ("tg", self.n_gen)) if count]
        return "+".join(parts) + (f"@d{self.n_depth}" if self.n_depth else "")

    @property
    def samples_ts(self) -> tuple[float, ...]:
        """Tokens per second of each repetition."""
        return tokens_per_s(self.samples_ns, self.n_prompt + self.n_gen)

    @property
    def time_ns(self) -> float:
        """The median repetition; the mean where single ones are not known."""
        return statistics.median(self.samples_ns) if self.samples_ns else self.avg_ns

    @property
    def machine(self) -> Mapping[str, str]:
        """The processor, the accelerators and the backends that ran it, whatever their order."""
        backends = sorted({"Metal" if name == "MTL" else name for name in self.backends.replace(" ", "").split(",")})
        return {"cpu_info": self.cpu_info.strip(), "gpu_info": self.gpu_info.strip(), "backends": ",".join(backends)}

    @property
    def settings(self) -> Mapping[str, str]:
        """All that two runs of one test have alike beside the machine, without what nobody asked for.

        Of ``model_type`` the file type is left: releases changed the rest of it, for which size and parameters stand.
        """
        found = {name: setting_text(getattr(self, name)) for name in IDENTITY_FIELDS}
        file_type = _FILE_TYPE.search(self.model_type)
        found["model_type"] = file_type[0].strip() if file_type else self.model_type
        for name, value in self.others:
            text = setting_text(value)
            if not name.startswith(("avg_", "stddev_")) and text not in (
                (_UNASKED[name],) if name in _UNASKED else _UNASKED_OTHERS
            ):
                found[name] = text
        return {name: text for name, text in found.items() if name not in _NO_SETTING}

    def to_plain(self) -> dict[str, Any]:
        """Return the fields under llama-bench's names, those of the repetitions last."""
        plain = {name: getattr(self, name) for name in (*IDENTITY_FIELDS, *TIME_FIELDS)}
        return {**plain, **dict(self.others), "samples_ns": list(self.samples_ns), "samples_ts": list(self.samples_ts)}

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any], where: str) -> BenchRun:
        """Build from the fields of one test; `where` begins the message of an error.

        Numbers may be given as text, as SQL has them. Fields that are not known are kept in `others`; what older
        releases said in other fields is read from those.

        Raises PerfsuiteError: a field is missing or of another kind, or the test ran nothing.
        """
        told = {**_of_older(plain), **plain}
        known: dict[str, Any] = {name: _value(told, name, where) for name in (*IDENTITY_FIELDS, *TIME_FIELDS)}
        run = cls(**known, samples_ns=_samples_ns(plain, where), others=_others(plain, known, where))
        _check_lengths(run, where)
        return run


def setting_text(value: FieldValue) -> str:
    """Return a value of any form as one text: ``1`` for true, and for ``'1.000000'``."""
    text = str(int(value)) if isinstance(value, bool) else str(value).strip()
    try:
        return f"{float(text):.15g}"
    except ValueError:
        return text


def _of_older(plain: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what releases before ``backends``, ``n_ubatch`` and ``type_k`` wrote, under the names of today."""
    found = {"n_ubatch": plain.get("n_batch")}
    if "blas" in plain:
        asked = (name for field, name in _OLDER_BACKENDS.items() if str(plain.get(field)) in ("True", "1"))
        found["backends"] = next(asked, "CPU") + (",RPC" if plain.get("rpc") else "")
    if "f16_kv" in plain:
        kind = "f16" if str(plain["f16_kv"]) in ("True", "1") else "f32"
        found |= {"type_k": kind, "type_v": kind}
    return found


def measured_times(samples_ns: tuple[int, ...], n_tokens: int) -> dict[str, Any]:
    """Return the fields of time that follow from repetitions of `n_tokens` each, as llama-bench computes them.

    The standard deviation is that of a sample, 0 of a single repetition.
    """
    rates = tokens_per_s(samples_ns, n_tokens)
    return {
        "samples_ns": samples_ns,
        "avg_ns": int(statistics.fmean(samples_ns)),
        "stddev_ns": int(_deviation(samples_ns)),
        "avg_ts": statistics.fmean(rates),
        "stddev_ts": _deviation(rates),
    }


def tokens_per_s(samples_ns: tuple[int, ...], n_tokens: int) -> tuple[float, ...]:
    """Return n / t of each sample."""
    return tuple(n_tokens * NS_PER_S / sample_ns for sample_ns in samples_ns)


#: The fields that say how long it took, and those that say what ran.
TIME_FIELDS = ("avg_ns", "stddev_ns", "avg_ts", "stddev_ts")
IDENTITY_FIELDS = tuple(
    field.name for field in fields(BenchRun) if field.name not in (*TIME_FIELDS, "samples_ns", "others")
)
_KINDS: Mapping[str, type] = {
    field.name: {"str": str, "int": int, "float": float}[str(field.type)]
    for field in fields(BenchRun)
    if field.name in (*IDENTITY_FIELDS, *TIME_FIELDS)
}


def _deviation(values: tuple[int, ...] | tuple[float, ...]) -> float:
    return statistics.stdev(values) if len(values) > 1 else 0.0


def _value(plain: Mapping[str, Any], name: str, where: str) -> FieldValue:
    value = plain.get(name, _SINCE_ADDED.get(name))
    if value is None:
        raise PerfsuiteError(f"{where}: {name} is missing; expected the output of llama-bench")
    kind = _KINDS[name]
    converted = value if kind is str and isinstance(value, str) else _number(value, kind)
    if converted is None:
        raise PerfsuiteError(f"{where}: {name} is {repr(value)[:60]}, expected {_WORDS[kind]}")
    return converted


def _number(value: object, kind: type) -> FieldValue | None:
    """Return a finite number, of which a whole one is no float; None where it is none."""
    if kind is str or not isinstance(value, str | int | (float if kind is float else int)):
        return None
    try:
        number = int(value) if kind is int else float(value)
    except (ValueError, OverflowError):
        return None
    return number if -LARGEST <= number <= LARGEST else None


_WORDS: Mapping[type, str] = {str: "text", int: "a whole number", float: "a number"}


def _samples_ns(plain: Mapping[str, Any], where: str) -> tuple[int, ...]:
    samples = plain.get("samples_ns", [])
    if not isinstance(samples, list) or not all(type(each) is int and 0 < each <= LARGEST for each in samples):
        raise PerfsuiteError(f"{where}: samples_ns is {repr(samples)[:60]}, expected a list of whole numbers above 0")
    return tuple(samples)


def _others(
    plain: Mapping[str, Any], known: Mapping[str, FieldValue], where: str
) -> tuple[tuple[str, FieldValue], ...]:
    rest = ((name, value) for name, value in plain.items() if name not in (*known, "samples_ns", "samples_ts"))
    others = tuple((name, value) for name, value in rest if isinstance(value, str | int | float))
    for name, value in others:
        if not isinstance(value, str) and not -LARGEST <= value <= LARGEST:
            raise PerfsuiteError(f"{where}: {name} is {repr(value)[:60]}, expected a number below 2**63")
    return others


def _check_lengths(run: BenchRun, where: str) -> None:
    least = {"n_prompt": 0, "n_gen": 0, "n_depth": 0, "n_batch": 1, "n_ubatch": 1, "n_threads": 1, "avg_ns": 1}
    for name, minimum in {**least, "stddev_ns": 0, "avg_ts": 0, "stddev_ts": 0}.items():
        if getattr(run, name) < minimum:
            raise PerfsuiteError(f"{where}: {name} is {getattr(run, name)}, expected {minimum} or more")
    for name in ("n_prompt", "n_gen", "n_depth"):
        if getattr(run, name) > _MOST_TOKENS:
            raise PerfsuiteError(f"{where}: {name} is {getattr(run, name)}, expected {_MOST_TOKENS} tokens at most")
    if run.n_prompt + run.n_gen == 0:
        raise PerfsuiteError(f"{where}: n_prompt and n_gen are 0, expected one of them above 0")

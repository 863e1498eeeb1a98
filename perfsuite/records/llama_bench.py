"""The tests of llama-bench: what was run, on what, and how long each repetition took; read in any form, and written."""

from __future__ import annotations

import json
import re
import statistics
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Annotated, Any

from msgspec import Meta

from perfsuite.errors import PerfsuiteError
from perfsuite.records.benchmark_text import LLAMA_BENCH_TABLE, bench_rows
from perfsuite.records.codec import LARGEST, Amount, Count, Size, Whole, from_plain
from perfsuite.records.whole_file import write_whole_bytes
from perfsuite.units import NS_PER_S

#: What a field of llama-bench's output can be.
FieldValue = str | int | float

#: llama.cpp numbers tokens by 32 bits.
_Tokens = Annotated[int, Meta(ge=0, lt=2**31, description="a whole number from 0 to 2147483647 tokens")]

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
    build_number: Whole
    cpu_info: str
    gpu_info: str
    backends: str
    #: As it was given with ``-m``.
    model_filename: str
    #: llama.cpp's words: architecture, size class and file type, such as ``llama 1B Q4_0``.
    model_type: str
    model_size: Whole
    model_n_params: Whole
    n_batch: Size
    n_ubatch: Size
    n_threads: Size
    type_k: str
    type_v: str
    n_gpu_layers: Whole
    #: 1 on, 0 off, -1 where llama.cpp chose.
    flash_attn: Whole
    n_prompt: _Tokens
    n_gen: _Tokens
    #: Tokens that the cache held before.
    n_depth: _Tokens
    #: ISO 8601 in UTC, to the second.
    test_time: str
    #: Mean and standard deviation of a repetition, and of its tokens per second.
    avg_ns: Size
    stddev_ns: Count
    avg_ts: Amount
    stddev_ts: Amount
    #: One time a repetition, of all ``n_prompt + n_gen`` tokens; empty from SQL, which has no such column.
    samples_ns: tuple[Size, ...]
    #: Whatever else a release writes, by name.
    others: tuple[tuple[str, FieldValue], ...] = ()

    def __post_init__(self) -> None:
        if self.n_prompt + self.n_gen == 0:
            raise ValueError("n_prompt and n_gen are 0, expected one of them above 0")

    @property
    def test(self) -> str:
        """llama-bench's name of the test: ``pp512``, ``tg128``, ``pp512+tg128``, with ``@d1024`` at a depth."""
        parts = [f"{kind}{count}" for kind, count in (("pp", self.n_prompt), ("tg", self.n_gen)) if count]
        return "+".join(parts) + (f"@d{self.n_depth}" if self.n_depth else "")

    @property
    def samples_ts(self) -> tuple[float, ...]:
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
        told = {
            **_SINCE_ADDED,
            **_of_older(plain),
            **{name: value for name, value in plain.items() if value is not None},
        }
        known = {name: _value(told[name], name) for name in (*IDENTITY_FIELDS, *TIME_FIELDS) if name in told}
        known["samples_ns"] = plain.get("samples_ns", ())
        run = from_plain(known, cls, where, PerfsuiteError, "expected the output of llama-bench")
        return replace(run, others=_others(plain, known, where))


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
_TEXT_FIELDS = {field.name for field in fields(BenchRun) if field.type == "str"}


def _deviation(values: tuple[int, ...] | tuple[float, ...]) -> float:
    return statistics.stdev(values) if len(values) > 1 else 0.0


def _value(value: Any, name: str) -> Any:
    """Return a number that is given as text, or as a truth value, as one."""
    if name in _TEXT_FIELDS or not isinstance(value, str | bool):
        return value
    for kind in (int, float):
        try:
            return kind(value)
        except ValueError:
            pass
    return value


def _others(plain: Mapping[str, Any], known: Collection[str], where: str) -> tuple[tuple[str, FieldValue], ...]:
    rest = ((name, value) for name, value in plain.items() if name not in (*known, "samples_ts"))
    others = tuple((name, value) for name, value in rest if isinstance(value, str | int | float))
    for name, value in others:
        if not isinstance(value, str) and not -LARGEST <= value <= LARGEST:
            raise PerfsuiteError(f"{where}: {name} is {repr(value)[:60]}, expected a number below 2**63")
    return others


def read_llama_bench(path: Path) -> tuple[BenchRun, ...]:
    """Read the tests of one file, whose form its content shows.

    Raises PerfsuiteError: the file cannot be read, is none of the forms, is cut short, holds no test, or a test lacks
    a field; the message names the place.
    """
    return tuple(BenchRun.from_plain(row, where) for where, row in bench_rows(path))


def write_llama_bench(runs: Sequence[BenchRun], path: Path, *, form: str) -> None:
    """Write tests as ``llama-bench -o`` `form` does, whole or not at all; raises PerfsuiteError if that fails."""
    write_whole_bytes(path, bench_text(runs, form).encode(), PerfsuiteError)


def bench_text(runs: Sequence[BenchRun], form: str) -> str:
    """Return what ``llama-bench -o`` `form` prints for tests like these; the form is one of `BENCH_FORMS`."""
    if form not in BENCH_FORMS:
        raise PerfsuiteError(f"form {form!r} is unknown; accepted are {', '.join(BENCH_FORMS)}")
    return _WRITERS[form]([run.to_plain() for run in runs])


def _sql_text(tests: Sequence[Mapping[str, Any]]) -> str:
    columns = {name: value for test in tests for name, value in test.items() if not isinstance(value, list)}
    kinds = {str: "TEXT", float: "REAL"}
    declared = ",\n".join(f"  {name} {kinds.get(type(value), 'INTEGER')}" for name, value in columns.items())
    rows = (", ".join(_literal(test.get(name)) for name in columns) for test in tests)
    table = LLAMA_BENCH_TABLE
    # values are quoted, names are fields of ours
    inserted = "".join(f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({row});\n" for row in rows)  # nosec B608
    return f"CREATE TABLE IF NOT EXISTS {table} (\n{declared}\n);\n\n{inserted}"


def _literal(value: object) -> str:
    if value is None:
        return "NULL"
    text = str(int(value)) if isinstance(value, bool) else str(value)
    return "'" + text.replace("'", "''") + "'"


_WRITERS: Mapping[str, Callable[[Sequence[Mapping[str, Any]]], str]] = {
    "json": lambda tests: json.dumps(tests, indent=2, ensure_ascii=False) + "\n",
    "jsonl": lambda tests: "".join(json.dumps(test, ensure_ascii=False) + "\n" for test in tests),
    "sql": _sql_text,
}

BENCH_FORMS = tuple(_WRITERS)

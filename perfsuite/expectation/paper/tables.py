"""LIFE's Tables 4 to 12, computed, beside what the paper prints."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import TypeAlias

from perfsuite.errors import PerfsuiteError
from perfsuite.expectation.paper.operators import BF16, lora_update
from perfsuite.expectation.paper.passes import (
    OperatorKey,
    RopeReach,
    Template,
    decode_pass,
    generic_template,
    layer_operators,
    pass_of,
    pass_operators,
    prefill_pass,
    table_elements,
    template_of,
)
from perfsuite.workload.architecture import Architecture
from perfsuite.workload.catalog import find
from perfsuite.workload.variant import Variant, find_variant, variant_names

#: The columns that a value follows from, by name, in the table's order.
Inputs: TypeAlias = tuple[tuple[str, str | int], ...]

#: The paper's GB and MB, and what it calls TOPs and GOPs.
GIB = 1 << 30
MIB = 1 << 20
TERA = 1e12
GIGA = 1e9

#: Prompts of every table: the powers of two from 32 to 65536.
PROMPTS = tuple(1 << exponent for exponent in range(5, 17))
#: The one prompt of Tables 6 and 10 that is no power of two.
ODD_PROMPT = 1536


@dataclass(frozen=True, slots=True, kw_only=True)
class TableRow:
    """One value with what it follows from."""

    table: int
    inputs: Inputs
    #: None in a table of one metric.
    metric: str | None
    value: float


def table_rows(
    table: int, values: Mapping[str, float] | Mapping[None, float], **inputs: str | int
) -> Iterator[TableRow]:
    """Yield a row for each metric of one set of inputs."""
    for metric, value in values.items():
        yield TableRow(table=table, inputs=tuple(inputs.items()), metric=metric, value=value)


def llama2_7b() -> Architecture:
    """Return the architecture of every table but the eighth."""
    return find("llama-2-7b")


def prompts_with_odd() -> tuple[int, ...]:
    """List the prompts of Tables 6 and 10 in order."""
    return tuple(sorted((*PROMPTS, ODD_PROMPT)))


#: Columns that are no input of the value.
_OTHER_COLUMNS = frozenset({"metric", "printed", "accept_low", "accept_high", "reproducible", "note"})


@dataclass(frozen=True, slots=True, kw_only=True)
class PrintedCell:
    """One printed value."""

    table: int
    inputs: Inputs
    metric: str | None
    printed: float
    #: What a computation may give, both included; None where the cell is not reproducible.
    accept_low: float | None
    accept_high: float | None
    #: False for misprints, coarse grids and measurements that are not held.
    reproducible: bool
    #: Why a cell is not reproducible.
    note: str

    def accepts(self, value: float) -> bool:
        """Whether a value is in the window; any does where there is none."""
        low, high = self.accept_low, self.accept_high
        return (low is None or value >= low) and (high is None or value <= high)


@cache
def printed_cells(table: int) -> tuple[PrintedCell, ...]:
    """Return the printed values of a table. *Source*: LIFE, Tables 4 to 12."""
    path = files("perfsuite.expectation.paper") / "published" / f"table{table}.csv"
    return tuple(
        PrintedCell(
            table=table,
            inputs=tuple(
                (name, int(text) if text.isdigit() else text)
                for name, text in line.items()
                if name not in _OTHER_COLUMNS
            ),
            metric=line.get("metric"),
            printed=float(line["printed"]),
            accept_low=float(line["accept_low"]) if line["accept_low"] else None,
            accept_high=float(line["accept_high"]) if line["accept_high"] else None,
            reproducible=line["reproducible"] == "yes",
            note=line["note"] or "",
        )
        for line in csv.DictReader(path.read_text(encoding="utf-8").splitlines())
    )


#: Positions before the first token. Recovered from the cells, which are 8192 positions of cache and operands apart
#: from the weights; the paper does not print it.
N_PAST = 8192
#: Times that the scores of a position are written and read where attention is not fused.
_SCORE_MOVES = 4
#: The first and the last token of the paper, and the powers of two between.
_TOKENS = (*(1 << exponent for exponent in range(11)), 2000)
#: Format of the KV cache and fusion by mode, and KV heads by attention; latent attention has all heads.
_MODES = {"Eager": ("bf16", False), "Fused": ("bf16", True), "Fused-KV8": ("int8", True), "Fused-KV4": ("int4", True)}
_KV_HEADS = {"MHA": 32, "GQA": 8, "MQA": 1, "MLA": 32}


def table_11() -> Iterator[TableRow]:
    """MiB, cut to an integer as the paper cuts it, by mode, attention and token."""
    for mode in _MODES:
        for attention in _KV_HEADS:
            template = _template(mode, attention)
            for token in _TOKENS:
                mib = attention_bytes(template, N_PAST + token - 1) // MIB
                yield from table_rows(11, {None: mib}, mode=mode, attention=attention, token=token)


def attention_bytes(template: Template, n_past: int) -> int:
    """Bytes of one attention block after `n_past` positions.

    Weights + RoPE tables + n_past (cached row + K operand [+ V operand + 4 x heads x 2 bytes of scores if unfused]).
    """
    matrices = (*template.attention_inputs, template.attention_output)
    weights = sum(template.weights.matrix_bytes(each.k, each.n) for each in matrices)
    return weights + BF16.stored_bytes(sum(table_elements(template))) + n_past * _position_bytes(template)


def _position_bytes(template: Template) -> int:
    kept = template.cache_row_bytes + template.kv.stored_bytes(template.q_width)
    if template.fused:
        return kept
    scores = _SCORE_MOVES * template.activations.stored_bytes(template.n_heads)
    return kept + template.kv.stored_bytes(template.v_width) + scores


def _template(mode: str, attention: str) -> Template:
    kv, fused = _MODES[mode]
    is_latent = attention == "MLA"
    variant = Variant(name=mode, weights="bf16", activations="bf16", kv=kv, fused=fused, mla=is_latent)
    return template_of(replace(llama2_7b(), n_kv_heads=_KV_HEADS[attention]), variant)


#: Ranks of the table: the powers of two from 8 to 256.
RANKS = tuple(1 << exponent for exponent in range(3, 9))


def table_12() -> Iterator[TableRow]:
    """Operations in 1e9 by matrix and rank, and all matrices of all layers together."""
    template = generic_template(llama2_7b(), find_variant("bf16-int4-lora"))
    for rank in RANKS:
        flops = {each.name: lora_update(each.k, each.n, rank).flops for each in template.matrices}
        flops[f"total_x{template.n_layers}"] = template.n_layers * sum(flops.values())
        for layer, count in flops.items():
            yield from table_rows(12, {None: count / GIGA}, layer=layer, rank=rank)


#: The paper's names of the catalogue's architectures; all run with int4 weights, which are dequantised on the way.
_ARCHITECTURES = {
    "Llama2-7B": "llama-2-7b",
    "DeepSeek-Qwen2.5-1.5B": "deepseek-r1-distill-qwen-1.5b",
    "DeepSeekv2-Lite": "deepseek-v2-lite",
    "Gemma2-2B": "gemma-2-2b",
    "Phi4-3.8B": "phi-4-mini",
    "Qwen3-14B": "qwen3-14b",
    "Qwen3-32B": "qwen3-32b",
}
_VARIANT = "bf16-int4"


def table_8() -> Iterator[TableRow]:
    """Dispatches by architecture, with its layers and the dispatches of one; extra norms, MLA and MoE do not count."""
    for name, catalogue_name in _ARCHITECTURES.items():
        template = generic_template(find(catalogue_name), find_variant(_VARIANT))
        layer = pass_of(layer_operators(template, 1, 0, RopeReach.PER_TOKEN)).total.n_dispatches
        whole = pass_of(pass_operators(template, 1, 0, RopeReach.PER_TOKEN)).total.n_dispatches
        yield from table_rows(8, {None: whole}, model=f"{name}-int4", layers=template.n_layers, per_layer=layer)


#: The variant that Table 4 is about.
_PLAIN = "bf16-bf16"
_SHARES = {"gemm_pct": OperatorKey.GEMM, "bmm_pct": OperatorKey.BMM, "softmax_pct": OperatorKey.SOFTMAX}


def table_4() -> Iterator[TableRow]:
    """Shares of operators in percent of all operations, operations in 1e12, KV cache in GiB, over prompts."""
    for prompt in PROMPTS:
        cost = prefill_pass(llama2_7b(), find_variant(_PLAIN), prompt)
        values = {metric: 100.0 * cost.flops_shares[key.value] for metric, key in _SHARES.items()}
        values |= {"tops": cost.total.flops / TERA, "kv_gib": cost.total.kv_written_bytes / GIB}
        yield from table_rows(4, values, prompt=prompt)


def table_5() -> Iterator[TableRow]:
    """Operations in 1e12, bytes read and written and KV cache in GiB, over variants and prompts."""
    for variant in variant_names():
        for prompt in PROMPTS:
            total = prefill_pass(llama2_7b(), find_variant(variant), prompt).total
            values = {
                "tops": total.flops / TERA,
                "memrd_gib": total.read_bytes / GIB,
                "memwr_gib": total.written_bytes / GIB,
                "kv_gib": total.kv_written_bytes / GIB,
            }
            yield from table_rows(5, values, variant=variant, prompt=prompt)


@dataclass(frozen=True, slots=True, kw_only=True)
class PaperDevice:
    """A device as Tables 6 and 10 forecast it; None where a table leaves it out."""

    name: str
    flops_per_s: float | None = None
    bytes_per_s: float | None = None
    #: Share of the bandwidth that Table 10 assumes, and the variant of Llama2-7B that it decodes.
    memory_efficiency_ratio: float | None = None
    decode_variant: str | None = None
    #: Measured time to first token by prompt, in seconds.
    measured_ttft_s: Mapping[int, float] = field(default_factory=dict)


#: Ryzen 9 HX 370 (CPU), Ryzen AI Max+ 395 (NPU and iGPU) and Tesla V100. *Source*: LIFE, Tables 6 and 10; variants
#: and efficiencies of Table 10 follow from its own throughput and Table 7's memory.
PAPER_DEVICES = (
    PaperDevice(
        name="CPU",
        flops_per_s=326.4e9,
        bytes_per_s=240e9,
        memory_efficiency_ratio=0.10,
        decode_variant="bf16-bf16",
        measured_ttft_s={32: 1.85, 256: 14.61, 2048: 186.15},
    ),
    PaperDevice(name="NPU", flops_per_s=50e12),
    PaperDevice(name="iGPU", bytes_per_s=256e9, memory_efficiency_ratio=0.50, decode_variant="bf16-int4"),
    PaperDevice(
        name="V100", flops_per_s=126e12, bytes_per_s=900e9, memory_efficiency_ratio=0.50, decode_variant="fp16-fp16"
    ),
)


#: Tokens that Table 9 generates.
N_GENERATED = 2000


def decode_gib(variant: str, n_past: int, rope: RopeReach = RopeReach.WHOLE_TABLE) -> float:
    """GiB that one step reads and writes after `n_past` positions."""
    return decode_pass(llama2_7b(), find_variant(variant), n_past, rope=rope).total.moved_bytes / GIB


def table_7() -> Iterator[TableRow]:
    """Operations in 1e9 and GiB read and written in the first step after a prompt."""
    for prompt in PROMPTS:
        for variant in variant_names():
            total = decode_pass(llama2_7b(), find_variant(variant), prompt).total
            values = {"gops": total.flops / GIGA, "mem_gib": total.moved_bytes / GIB}
            yield from table_rows(7, values, prompt=prompt, variant=variant)


def table_9() -> Iterator[TableRow]:
    """GiB of the first and of the 2000th step, and their ratio, with RoPE for the token alone."""
    for prompt in PROMPTS:
        for variant in variant_names():
            first = decode_gib(variant, prompt, RopeReach.PER_TOKEN)
            last = decode_gib(variant, prompt + N_GENERATED - 1, RopeReach.PER_TOKEN)
            values = {"first_gib": first, "last_gib": last, "ratio": last / first}
            yield from table_rows(9, values, prompt=prompt, variant=variant)


#: Prompts from which on Table 6 computes with operations that it has rounded to two decimals.
_ROUNDED_FROM = 128
#: Operations of every device, the quantised ones too, are those of this variant.
_COUNTED = "bf16-bf16"


def table_6() -> Iterator[TableRow]:
    """Operations in 1e12, seconds to first token at 50 and 100 % of a device, and percent of it that was reached.

    TTFT at 50 % is TOPs / (0.5 TOPS) and that at 100 % is half of it; the efficiency is that at 100 % over the measured
    time, where that is held.
    """
    for prompt in prompts_with_odd():
        tops = prefill_pass(llama2_7b(), find_variant(_COUNTED), prompt).total.flops / TERA
        used = round(tops, 2) if prompt >= _ROUNDED_FROM else tops
        for device in PAPER_DEVICES:
            if device.flops_per_s is None:
                continue
            full_s = used * TERA / device.flops_per_s
            values = {"tops": tops, "ttft_100": full_s, "ttft_50": 2.0 * full_s}
            if prompt in device.measured_ttft_s:
                values["efficiency_pct"] = 100.0 * full_s / device.measured_ttft_s[prompt]
            yield from table_rows(6, values, hw=device.name, prompt=prompt)


def table_10() -> Iterator[TableRow]:
    """Tokens/s: efficiency x bandwidth in GB/s (1e9) over Table 7's memory in GiB, as the paper divides them.

    Its measured efficiencies need throughputs that are not held.
    """
    for prompt in prompts_with_odd():
        for device in PAPER_DEVICES:
            if device.bytes_per_s is None or device.memory_efficiency_ratio is None or device.decode_variant is None:
                continue
            gigabytes_per_s = device.memory_efficiency_ratio * device.bytes_per_s / GIGA
            tokens_per_s = gigabytes_per_s / decode_gib(device.decode_variant, prompt)
            yield from table_rows(10, {"forecast_tps": tokens_per_s}, hw=device.name, prompt=prompt)


#: Every table by its number.
PAPER_TABLES: Mapping[int, Callable[[], Iterator[TableRow]]] = MappingProxyType(
    {4: table_4, 5: table_5, 6: table_6, 7: table_7, 8: table_8, 9: table_9, 10: table_10, 11: table_11, 12: table_12}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReproducedRow:
    """A computed value and the printed one, None where the paper prints none."""

    row: TableRow
    cell: PrintedCell | None

    @property
    def relative_error(self) -> float | None:
        """Computed over printed less 1; None where nothing is printed or 0 is."""
        return None if self.cell is None or not self.cell.printed else self.row.value / self.cell.printed - 1.0

    @property
    def inside(self) -> bool | None:
        """Whether the value is in the window of a reproducible cell; None without such a cell."""
        if self.cell is None or not self.cell.reproducible:
            return None
        return self.cell.accepts(self.row.value)


def reproduce(table: int) -> tuple[ReproducedRow, ...]:
    """Compute a table and join it to its printed values.

    Raises PerfsuiteError for a table that the paper does not have, or a reproducible cell that no row computes.
    """
    if table not in PAPER_TABLES:
        raise PerfsuiteError(f"table {table!r} is not LIFE's; accepted are {', '.join(map(str, PAPER_TABLES))}")
    cells = {_key(cell): cell for cell in printed_cells(table)}
    rows = tuple(ReproducedRow(row=row, cell=cells.pop(_key(row), None)) for row in PAPER_TABLES[table]())
    for cell in cells.values():
        if cell.reproducible:
            raise PerfsuiteError(f"table {table}: no row is computed for {dict(cell.inputs)}, metric {cell.metric}")
    return rows


def _key(row: TableRow | PrintedCell) -> tuple[object, ...]:
    return frozenset(row.inputs), row.metric

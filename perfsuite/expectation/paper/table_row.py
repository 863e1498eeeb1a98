"""A computed value of one of the paper's tables, and the units and prompts that the tables share."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from perfsuite.workload.architecture import Architecture
from perfsuite.workload.catalog import find

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

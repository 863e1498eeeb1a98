"""What the figures share: percentages, variants under one label, the long prompt of three of them."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import TypeVar

from perfsuite.expectation.paper.passes import prefill_pass
from perfsuite.expectation.paper.table_row import llama2_7b
from perfsuite.records.op_cost import OpCost
from perfsuite.workload.variant import Variant, find_variant, variant_names

#: *Source*: LIFE, Fig. 4 and 6.
N_PROMPT = 4096
VARIANTS = ("bf16-int4", "bf16-int4-kv4")


def long_prompt(variant: str, chunk: int | None = None) -> OpCost:
    """Cost the prompt, at once or in chunks."""
    return prefill_pass(llama2_7b(), find_variant(variant), N_PROMPT, chunk=chunk).total


Shown = TypeVar("Shown", bound=Hashable)


def variants_by(shown: Callable[[Variant], Shown]) -> tuple[tuple[str, Shown], ...]:
    """Group LIFE's variants by what is shown of them: their names, joined, with that."""
    names: dict[Shown, list[str]] = {}
    for name in variant_names():
        names.setdefault(shown(find_variant(name)), []).append(name)
    return tuple((", ".join(group), value) for value, group in names.items())


def percent(ratio: float, digits: int = 0) -> str:
    """Write a ratio as a percentage."""
    return f"{100.0 * ratio:.{digits}f} %"

"""Table 8: dispatches of a pass, 19 a layer of separate operators and 3 around the layers."""

from __future__ import annotations

from collections.abc import Iterator

from perfsuite.expectation.paper.passes import layer_operators, pass_of, pass_operators
from perfsuite.expectation.paper.rotary import RopeReach
from perfsuite.expectation.paper.table_row import TableRow, table_rows
from perfsuite.expectation.paper.template import generic_template
from perfsuite.workload.catalog import find
from perfsuite.workload.variant import find_variant

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

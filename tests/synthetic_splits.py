"""A made-up run whose graph is split over two backends, as the ``splits`` recorder sees it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from perfsuite.records.engine_columns import SPLIT_DTYPE
from perfsuite.records.events import EngineRecord, Node, Phase, Span, Tensor

#: The backends, and the name of the device that refuses.
PROCESSOR, CARD, DEVICE = "CPU", "OpenCL", "GPUOpenCL"

GATHER = ("embd", "GET_ROWS", (DEVICE,))
NORM = ("norm-{layer}", "RMS_NORM", ())
VIEW = ("view-{layer}", "VIEW", ())
PRODUCT = ("ffn_out-{layer}", "MUL_MAT", ())


def node(name: str, op: str, refused_by: tuple[str, ...] = (), *, rows: int = 1) -> Node:
    return Node(
        tensor=Tensor(name=name, type="f32", ne=(64, rows, 1, 1), nb=(4, 256, 256, 256)),
        op=op,
        timed=op != "VIEW",
        fused=False,
        sources=(Tensor(name="weight", type="q8_0", ne=(64, 64, 1, 1), nb=(34, 68, 4352, 4352)),),
        refused_by=refused_by,
    )


def layer(number: int, *, rows: int = 1) -> tuple[Node, ...]:
    return tuple(node(name.format(layer=number), op, refused, rows=rows) for name, op, refused in (NORM, VIEW, PRODUCT))


def split_record(
    calls: Sequence[tuple[Phase, Sequence[tuple[str, tuple[Node, ...]]]]], *, n_dropped: int = 0
) -> EngineRecord:
    """Return a record of calls of 100 ns, each of 10 tokens where it is a prefill, with the splits that each has."""
    graphs: list[tuple[Node, ...]] = []
    spans, splits = [], []
    for number, (phase, parts) in enumerate(calls):
        start_ns, n_tokens = number * 1000, 10 if phase is Phase.PREFILL else 1
        spans.append(
            Span(phase=phase, repetition=0, token=0, n_tokens=n_tokens, start_ns=start_ns, end_ns=start_ns + 100)
        )
        for place, (backend, nodes) in enumerate(parts):
            at_ns = start_ns + 10 * (place + 1)
            splits.append((at_ns, at_ns + 5, len(graphs), (PROCESSOR, CARD).index(backend)))
            graphs.append(nodes)
    return EngineRecord(
        engine_version="llama 1, ggml 1",
        spans=tuple(spans),
        graphs=tuple(graphs),
        n_dropped=n_dropped,
        splits=np.array(splits, SPLIT_DTYPE).tobytes(),
        backends=(PROCESSOR, CARD),
    )

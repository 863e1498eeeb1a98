"""Learns which kernels compute which operator of a workload, once for a build and a device, and keeps it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path

from perfsuite import __version__
from perfsuite.errors import MeasurementError
from perfsuite.experiments.recorder_traces import grouped_plan, traced_run
from perfsuite.measure.board.protocol import Board
from perfsuite.measure.opencl_backend import OpenClBackend
from perfsuite.measure.plan import LlamaPlan
from perfsuite.records.codec import rebuilt, to_plain
from perfsuite.records.whole_file import write_json
from perfsuite.trace.opencl.kernel_mapping import KernelMapping, group_ends, learn_mapping


def learnt_mapping(
    plan: LlamaPlan,
    backend: OpenClBackend,
    board: Board,
    *,
    model: str,
    cache_dir: Path,
    announce: Callable[[str], None],
) -> KernelMapping:
    """Return the mapping of a workload: the stored one, or what three runs teach, which is then stored.

    `model` is the identity of the weights, wherever their file lies.

    Raises
    ------
    MeasurementError
        A run failed, or the kernels that a group takes by itself are not those of full speed.
    """
    path = cache_dir / "mappings" / f"{_key(plan, backend, model)}.json"
    stored = _stored(path)
    if stored is not None:
        return stored
    announce("learning which kernels compute which operator: three runs, once for this build and device")
    single = replace(plan, n_repetitions=1)
    full_speed = traced_run(single, backend, board).run
    by_node = traced_run(grouped_plan(single), backend, board).run
    ends = group_ends(by_node, full_speed)
    mapping = learn_mapping(traced_run(grouped_plan(single, ends), backend, board).run, full_speed)
    write_json(path, to_plain(mapping), MeasurementError)
    return mapping


#: Of a plan, what says where things lie on a board, or is drawn for each process.
_PLACES_AND_DRAWS = (
    *("cache_dir", "gguf_path", "lora_path", "draft_path", "mmproj_path", "library_dir", "backend_library"),
    *("layout_seed", "n_repetitions"),
)


def _key(plan: LlamaPlan, backend: OpenClBackend, model: str) -> str:
    """Digest everything that may change the sequence of kernels."""
    workload = {name: value for name, value in asdict(plan).items() if name not in _PLACES_AND_DRAWS}
    identity = {
        **workload,
        **backend.fingerprint,
        "suite": __version__,
        "model": model,
        "backend": backend.library_id,
        "layer": backend.compatibility_id,
        "switches": {name: value for name, value in backend.settings.items() if name.startswith("GGML_OPENCL_MM")},
    }
    return hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()[:16]


def _stored(path: Path) -> KernelMapping | None:
    """Read a mapping; what cannot be read is learnt anew."""
    try:
        mapping = rebuilt(json.loads(path.read_text("utf-8")), KernelMapping)
    except (OSError, ValueError, RecursionError):
        return None
    is_whole = mapping.sequences and all(len(each.kernels) == len(each.roles) for each in mapping.sequences)
    return mapping if is_whole else None

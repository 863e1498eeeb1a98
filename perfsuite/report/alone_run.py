"""Reads runs of a model alone and at its own speed: the only ones that llama.cpp's own tools have."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from perfsuite.errors import PerfsuiteError
from perfsuite.records.fingerprint import BESIDE
from perfsuite.records.run_json import read_plain_run


def read_alone_run(path: Path) -> Mapping[str, Any]:
    """Read a ``run.json``; raises PerfsuiteError where it was slowed down on purpose, or ran more than a model."""
    plain = read_plain_run(path)
    if plain.get("injected"):
        raise PerfsuiteError(f"{path}: was slowed down on purpose (--perf-inject); name a run without")
    fingerprint = plain.get("fingerprint", {}).get("llama", {})
    for field in BESIDE:
        if field in fingerprint:
            raise PerfsuiteError(f"{path}: ran with {field} {fingerprint[field]}, which no tool of llama.cpp's says")
    return plain

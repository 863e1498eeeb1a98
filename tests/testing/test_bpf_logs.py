"""The builder of the eBPF recorder's logs."""

from __future__ import annotations

import re
from pathlib import Path

from perfsuite.records.bpf_log_file import (
    MAGIC,
    MAX_SOURCES,
    MAX_TENSOR_BYTES,
    RECORD_DTYPE,
    VERSION,
    BpfFlag,
    BpfKind,
    EndReason,
    LevelsReason,
)

HEADER = (Path(__file__).parents[2] / "native" / "include" / "perfsuite" / "bpf_log.h").read_text(encoding="utf-8")


def number(name: str) -> int:
    found = re.search(rf"\bPS_BPF_{name} = (\d+)", HEADER)
    assert found is not None, name
    return int(found[1])


def test_kinds_and_flags_are_those_of_the_header() -> None:
    native = {BpfKind.STRUCTURE: "STRUCTURE_OF"}
    assert {kind.name: number(native.get(kind, kind.name)) for kind in BpfKind} == {k.name: k.value for k in BpfKind}
    assert {flag.name: number(str(flag.name)) for flag in BpfFlag} == {flag.name: flag.value for flag in BpfFlag}
    assert [number(f"LEVELS_{each.name}") for each in LevelsReason] == list(LevelsReason)
    assert [number(f"ENDED_{each.name}") for each in EndReason] == list(EndReason)


def test_sizes_are_those_of_the_header() -> None:
    assert f'PS_BPF_MAGIC "{MAGIC.decode()}"' in HEADER
    assert (number("VERSION"), number("MAX_TENSOR_BYTES"), number("MAX_SOURCES")) == (
        VERSION,
        MAX_TENSOR_BYTES,
        MAX_SOURCES,
    )
    assert f"/* {RECORD_DTYPE.itemsize} bytes" in HEADER

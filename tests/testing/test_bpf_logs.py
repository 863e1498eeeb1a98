"""The builder of the eBPF recorder's logs."""

from __future__ import annotations

import re
from pathlib import Path

from perfsuite.records.bpf_log_file import (
    HEADER_BYTES,
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
from perfsuite.testing.bpf_logs import RawTensor, small_log, tensor_layout

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


def test_a_log_begins_with_its_header_and_ends_with_its_records() -> None:
    """Header and records lie one behind the other, each filled up to a multiple of 8 bytes; its length is in it.

    Whatever a tensor is, its bytes are as many as the layout says.
    """
    log, layout = small_log(2), tensor_layout()
    assert len(log.header()) == HEADER_BYTES
    assert log.content() == log.header() + b"".join(log.parts)
    assert all(len(part) % 8 == 0 for part in log.parts)
    log.add(BpfKind.THREAD_NAME, 5, tail=b"abc")
    assert int.from_bytes(log.parts[-1][2:4], "little") == len(log.parts[-1]) == 48
    assert len(RawTensor(address=1, name="a", op="ADD").raw(layout)) == layout.tensor_bytes

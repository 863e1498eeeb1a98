"""Whether the device is slower than it was."""

from __future__ import annotations

import pytest

from perfsuite.verdict.drift import device_change
from perfsuite.verdict.entry import StoredSession

SESSION = StoredSession(
    recorded_at="2026-11-20T10:00:00.000+00:00",
    suite_version="0.1.0",
    samples_ns={
        "phase/m/siso/prefill": (100, 101, 102),
        "phase/m/siso/decode": (10, 10, 10),
        "phase/m/siso/copy": (1, 1, 1),
        "operator/m/siso/decode/ffn_up": (5, 5, 5),
        "kernel/gemm/64x64x64/f32": (20, 20, 20),
        "kernel/add/1024/f32": (30, 30, 30),
    },
)


def _text(prefill: int, decode: int, **options: object) -> str:
    times_ns = {"phase/m/siso/prefill": (prefill,), "phase/m/siso/decode": (decode,), "phase/m/siso/copy": (900,)}
    return device_change(SESSION, times_ns, spread_ratio=0.15, **options).text  # type: ignore[arg-type]


def test_a_device_as_it_was_says_so() -> None:
    assert _text(105, 10) == (
        "the device is as it was: the baseline's own build takes prefill +4.0 %, decode +0.0 % against 2026-11-20, "
        "and up to 15 % between sessions is usual"
    )


@pytest.mark.parametrize(("prefill", "decode"), [(120, 10), (101, 12), (101, 8), (80, 10)])
def test_a_device_that_is_slower_or_faster_has_changed(prefill: int, decode: int) -> None:
    assert _text(prefill, decode).startswith("the device has changed: the baseline's own build takes prefill ")


def test_another_fingerprint_is_a_change_at_any_speed() -> None:
    text = _text(101, 10, differences=("governor 'powersave', now 'performance'",))
    assert text.startswith("the device has changed: governor 'powersave', now 'performance'; the baseline's own build")
    kernels = {"kernel/gemm/64x64x64/f32": (40,), "kernel/add/1024/f32": (60,)}
    assert dict(device_change(SESSION, kernels, spread_ratio=0.15).ratios) == {"the kernels": 2.0}
    unknown = device_change(SESSION, {"phase/other/siso/decode": (10,)}, spread_ratio=0.15).text
    assert unknown.startswith("whether the device has changed since 2026-11-20 is not known")

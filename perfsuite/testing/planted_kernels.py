"""The suite's kernels with a fault planted in them: what hunts for slow and wrong shapes must find."""

from __future__ import annotations

import shutil
from enum import Enum
from pathlib import Path

from perfsuite.errors import OpenClError
from perfsuite.measure.engine_store import KERNELS_DIR

_SOURCE = "tiled.cl"


class Fault(str, Enum):
    """What is wrong with ``tiled.cl``, and so with GEMM, BMM and GEMV."""

    #: At k % 32 = 1 a work-group goes over its operands a step and three times, and keeps the last: right, but slow.
    SLOW_K = "slow-k"
    #: At n % 32 = 31 the last output of each row is another.
    WRONG_N = "wrong-n"


#: For each fault the line of the source that it stands in for, and the lines in its place.
_CHANGES = {
    Fault.SLOW_K: (
        "    for (int first_k = 0; first_k < k; first_k += STEP) {\n",
        # A step more than three times the usual ones: a launch of one step must show it too, which is not all kernel.
        """\
    const int steps = (k + STEP - 1) / STEP, idle = k % 32 == 1 ? 2 * steps + 1 : 0;
    for (int turn = 0; turn < idle + steps; ++turn) {
        const int first_k = (turn < idle ? turn % steps : turn - idle) * STEP;
        for (int r = 0; r < ITEM_M; ++r) sums[r] = turn == idle ? 0.0f : sums[r];
""",
    ),
    Fault.WRONG_N: (
        "        if (this_n < n) row[this_n] = values[j];\n",
        """\
        const float value = n % 32 == 31 && this_n == n - 1 ? 2.0f * values[j] + 1.0f : values[j];
        if (this_n < n) row[this_n] = value;
""",
    ),
}


def plant(folder: Path, fault: Fault) -> Path:
    """Write a directory of kernels with the fault into a folder and return it; `OpenClError` where there is no room.

    The fault stands in for one line of the shipped kernel; `OpenClError` too where that line is not there once.
    """
    line, planted = _CHANGES[fault]
    original = (KERNELS_DIR / _SOURCE).read_text(encoding="utf-8")
    if original.count(line) != 1:
        found = f"{original.count(line)} times {line.strip()!r}"
        raise OpenClError(f"{_SOURCE}: {found}; expected it once, to plant {fault.value}")
    kernels = folder / f"kernels-{fault.value}"
    try:
        shutil.copytree(KERNELS_DIR, kernels, ignore=shutil.ignore_patterns("__pycache__"))
        (kernels / _SOURCE).write_text(original.replace(line, planted), encoding="utf-8")
    except OSError as error:
        raise OpenClError(f"{error.filename}: {error.strerror}; the planted kernels go there") from None
    return kernels

"""The best ceilings that a machine has ever shown."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from perfsuite.expectation.ceilings import Bandwidth, Ceilings
from perfsuite.measure.ceiling_store import best_ceilings

MACHINE = {"soc": "A", "n_cores": "2"}
CEILINGS = Ceilings(
    n_threads=2,
    bandwidths=(
        Bandwidth(working_set_bytes=10**6, read_bytes_per_s=4.0, copy_bytes_per_s=3.0, triad_bytes_per_s=2.0),
        Bandwidth(working_set_bytes=10**8, read_bytes_per_s=2.0, copy_bytes_per_s=1.0, triad_bytes_per_s=1.0),
    ),
    fp32_flops_per_s=10.0,
    int8_flops_per_s=20.0,
    f16_flops_per_s=None,
    dispatch_ns=300,
)
SLOWER = replace(CEILINGS, fp32_flops_per_s=5.0, int8_flops_per_s=30.0)


def test_the_best_of_all_runs_is_kept(tmp_path: Path) -> None:
    """The first run stands alone; later ones have the best of each rate, whatever the order."""
    assert best_ceilings(CEILINGS, MACHINE, tmp_path) == CEILINGS
    best = replace(CEILINGS, int8_flops_per_s=30.0)
    assert best_ceilings(SLOWER, MACHINE, tmp_path) == best
    assert best_ceilings(CEILINGS, dict(reversed(MACHINE.items())), tmp_path) == best


def test_other_machines_and_threads_have_their_own(tmp_path: Path) -> None:
    """What another machine, or another number of threads, has shown is none of this one's."""
    best_ceilings(replace(CEILINGS, fp32_flops_per_s=99.0), MACHINE, tmp_path)
    assert best_ceilings(CEILINGS, {**MACHINE, "governor": "x"}, tmp_path) == CEILINGS
    one_thread = replace(CEILINGS, n_threads=1)
    assert best_ceilings(one_thread, MACHINE, tmp_path) == one_thread


@pytest.mark.parametrize(
    "other",
    [replace(CEILINGS, bandwidths=CEILINGS.bandwidths[:1]), replace(CEILINGS, f16_flops_per_s=50.0)],
    ids=["working-sets", "arithmetic"],
)
def test_what_was_measured_otherwise_is_replaced(tmp_path: Path, other: Ceilings) -> None:
    """Ceilings over other working sets, or with other arithmetic, are not merged."""
    best_ceilings(other, MACHINE, tmp_path)
    assert best_ceilings(SLOWER, MACHINE, tmp_path) == SLOWER


@pytest.mark.parametrize("content", ["", "{}", "[1]", "no JSON"])
def test_a_corrupt_store_is_written_anew(tmp_path: Path, content: str) -> None:
    """What cannot be read counts for nothing, and is replaced."""
    best_ceilings(CEILINGS, MACHINE, tmp_path)
    (path,) = (tmp_path / "ceilings").iterdir()
    path.write_text(content)
    assert best_ceilings(SLOWER, MACHINE, tmp_path) == SLOWER
    assert best_ceilings(SLOWER, MACHINE, tmp_path) == SLOWER


def test_a_store_that_cannot_be_written_is_no_error(tmp_path: Path) -> None:
    """Without a place to keep them, the ceilings are those of this run."""
    (tmp_path / "ceilings").touch()
    assert best_ceilings(CEILINGS, MACHINE, tmp_path) == CEILINGS

"""Raw looks that the program on a board took while something ran there, and the samples that they make here.

What must be read is found here, in a mirror of the board's files, and named to the program. Its looks are then written
into the mirror one after the other, and each is sampled as if it were now.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from perfsuite.device.machine import Conditions
from perfsuite.device.stability.sampler import DEFAULT_RATE_HZ, MOST_READS, MOST_SAMPLES, Sampling, sampled
from perfsuite.measure.board.mirror import Mirror


def asked_looks(board: Mirror, conditions: Conditions) -> tuple[Sampling, dict[str, Any]]:
    """Return what samples will be made of, and what the program is asked to look at for them."""
    found = sampled(board.root, zones=conditions.thermal_zones, processors=conditions.processors)
    groups = [
        [board.paths(each.files) for each in rotation.sources]
        for rotation in (found.rates, found.heats, found.throttling)
    ]
    power = () if found.power is None else found.power.files
    return found, {
        "period_s": 1 / DEFAULT_RATE_HZ,
        "most_reads": MOST_READS,
        "most_looks": MOST_SAMPLES,
        "power": board.paths(power),
        "groups": groups,
    }


def replay(board: Mirror, found: Sampling, looks: Sequence[Mapping[str, Any]]) -> None:
    """Take the samples of looks: the first and the last are of everything. `ValueError` where they are none."""
    for place, look in enumerate(looks):
        for path, content in look["reads"]:
            board.write(path, content)
        take = found.take_all if place in (0, len(looks) - 1) else found.take
        take(int(look["at_ns"]))

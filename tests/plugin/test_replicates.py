"""What a group of replicates tells of the machine."""

from __future__ import annotations

from typing import Any

from perfsuite.plugin.replicates import Replicates


def payload(waiting_ns: int | None = 0, sentinels: dict[str, int] | None = None) -> dict[str, Any]:
    """What a worker sends beside its measurement."""
    contention = {"wall_ns": 1, "running_ns": 100, "waiting_ns": waiting_ns, "steal_ratio": None, "others_ratio": None}
    return {"contention": contention, **({"sentinels": sentinels} if sentinels else {})}


def replicates(*payloads: dict[str, Any]) -> Replicates:
    """Replicates without complaint, on a machine with a load."""
    return Replicates(payloads=payloads, complaint=None, n_discarded=0, started_with={"load_average": 0.5})


def test_sentinels_are_gathered_by_name() -> None:
    """Each replicate adds one time to each sentinel; a payload without them adds none."""
    found = replicates(
        payload(sentinels={"memory_ns": 1, "compute_ns": 2}),
        payload(),
        payload(sentinels={"memory_ns": 3, "compute_ns": 4}),
    )
    assert found.sentinels_ns == {"memory": (1, 3), "compute": (2, 4)}
    assert replicates(payload()).sentinels_ns == {}
    assert replicates().sentinels_ns == {}


def test_covariates_are_of_the_middle_replicate() -> None:
    """The state at the start, and the median competition of those that know it; None where none does."""
    assert replicates(payload(0), payload(100), payload(300), payload(None)).covariates == {
        "load_average": 0.5,
        "waiting_ratio": 0.5,
        "steal_ratio": None,
    }

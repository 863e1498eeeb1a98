"""The number of threads that the engine gets by default, and that there may be."""

from __future__ import annotations

import pytest

from perfsuite.device.threads import default_threads, usable_threads


@pytest.mark.parametrize(
    ("n_usable", "n_physical", "n_threads"), [(8, 4, 4), (2, 4, 2), (4, 4, 4), (8, None, 8), (1, 1, 1)]
)
def test_each_physical_core_that_is_usable_has_a_thread(
    monkeypatch: pytest.MonkeyPatch, n_usable: int, n_physical: int | None, n_threads: int
) -> None:
    """Two threads of one core share its arithmetic; where cores are not known, usable processors count."""
    monkeypatch.setattr("os.sched_getaffinity", lambda _: set(range(n_usable)))
    monkeypatch.setattr("psutil.cpu_count", lambda logical: None if logical else n_physical)
    assert default_threads() == n_threads


@pytest.mark.parametrize("n_usable", [1, 3, 64])
def test_usable_processors_are_those_of_this_process(monkeypatch: pytest.MonkeyPatch, n_usable: int) -> None:
    """What the process may not run on does not count, and hardware threads do."""
    monkeypatch.setattr("os.sched_getaffinity", lambda _: set(range(n_usable)))
    monkeypatch.setattr("psutil.cpu_count", lambda logical: 2)
    assert usable_threads() == n_usable

"""Workers that are run again where somebody else had the processors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from perfsuite.device.profile import find_profile
from perfsuite.errors import MeasurementError
from perfsuite.measure.contention import Contention
from perfsuite.measure.plan import Plan, ProbePlan
from perfsuite.measure.undisturbed import N_TRIES, others_complaint, run_undisturbed, waiting_complaint

PROFILE = find_profile("host")


def contention(waiting: float | None = 0.0, others: float | None = 0.0, steal: float | None = 0.0) -> Contention:
    """Return a stretch of a second with these shares."""
    waiting_ns = None if waiting is None else round(waiting * 10**9)
    return Contention(
        wall_ns=10**9,
        running_ns=10**9 - (waiting_ns or 0),
        waiting_ns=waiting_ns,
        steal_ratio=steal,
        others_ratio=others,
    )


def test_a_quiet_replicate_is_used() -> None:
    """Neither rule complains of one that had the processors for itself, or where nothing is known."""
    for each in (contention(), contention(None, None, None)):
        assert waiting_complaint(each, PROFILE) is None
        assert others_complaint(each, PROFILE) is None


@pytest.mark.parametrize(
    ("seen", "waiting", "others"),
    [
        (contention(waiting=0.5, others=None), "threads waited 50 % of the time (limit 2 %) for a processor", None),
        (contention(waiting=0.03, others=0.03), "threads waited 3 % of the time (limit 2 %) for a processor", None),
        (contention(others=0.4), None, "other processes took 40 % of the time (limit 5 %) of the processors"),
        (contention(steal=0.2), "the hypervisor took 20 %", "the hypervisor took 20 %"),
    ],
)
def test_competition_is_told_by_its_kind(seen: Contention, waiting: str | None, others: str | None) -> None:
    """The engine minds its threads' waiting, the kernels what others took, and both the hypervisor."""
    for complaint, expected in (
        (waiting_complaint(seen, PROFILE), waiting),
        (others_complaint(seen, PROFILE), others),
    ):
        assert (complaint or "").startswith(expected) if expected else complaint is None


def test_threads_that_wait_for_each_other_have_no_competition() -> None:
    """A build with more threads than processors waits by itself; that is its speed."""
    assert waiting_complaint(contention(waiting=0.4, others=0.01), PROFILE) is None


PLAN = ProbePlan(cache_dir="/cache", n_threads=2, budget_ms=1)
HOST = find_profile("host")

QUIET = {"wall_ns": 10**9, "running_ns": 2 * 10**9, "waiting_ns": 10**6, "steal_ratio": 0.0, "others_ratio": 0.0}
CONTENDED = {**QUIET, "waiting_ns": 2 * 10**9, "others_ratio": 0.4}
STOLEN = {**QUIET, "steal_ratio": 0.3}


class Workers:
    """Answers each run with the next contention, and notes the plans."""

    def __init__(self, *contentions: dict[str, Any]) -> None:
        self._contentions = list(contentions)
        self.plans: list[Plan] = []
        self.environments: list[Mapping[str, str] | None] = []

    def run(self, plan: Plan, *, extra_environment: Mapping[str, str] | None = None) -> dict[str, Any]:
        """Return a payload that tells how many runs there were."""
        self.plans.append(plan)
        self.environments.append(extra_environment)
        return {"n_runs": len(self.plans), "contention": dict(self._contentions.pop(0))}


def workers(monkeypatch: pytest.MonkeyPatch, *contentions: dict[str, Any]) -> Workers:
    """Replace the workers."""
    found = Workers(*contentions)
    monkeypatch.setattr("perfsuite.measure.undisturbed.run_worker", found.run)
    return found


@pytest.mark.parametrize("n_disturbed", range(N_TRIES))
def test_a_disturbed_worker_is_run_again(monkeypatch: pytest.MonkeyPatch, n_disturbed: int) -> None:
    """The first undisturbed run counts, and nothing runs after it."""
    found = workers(monkeypatch, *[CONTENDED] * n_disturbed, QUIET, QUIET)
    assert run_undisturbed(PLAN, HOST)["n_runs"] == n_disturbed + 1
    assert found.plans == [PLAN] * (n_disturbed + 1)


def test_a_board_may_run_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each try is run by whom the caller names, and none in a process of this machine."""
    here, there = workers(monkeypatch, QUIET), Workers(CONTENDED, QUIET)
    assert run_undisturbed(PLAN, HOST, run=there.run)["n_runs"] == 2
    assert (here.plans, there.plans) == ([], [PLAN, PLAN])


def test_each_try_has_the_same_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the workers are started with beside their plan does not change from one try to the next."""
    found = workers(monkeypatch, CONTENDED, QUIET)
    run_undisturbed(PLAN, HOST, extra_environment={"A": "b"})
    assert found.environments == [{"A": "b"}] * 2


def test_what_disturbs_is_for_the_caller_to_say(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another complaint than that of waiting threads decides which run counts."""
    found = workers(monkeypatch, QUIET, CONTENDED)
    payload = run_undisturbed(PLAN, HOST, complain=lambda seen, _: None if seen.others_ratio else "too quiet")
    assert payload["n_runs"] == len(found.plans) == 2


@pytest.mark.parametrize("n_tries", [1, 2, 5])
def test_after_so_many_tries_it_gives_up(monkeypatch: pytest.MonkeyPatch, n_tries: int) -> None:
    """The error names the task, the number of tries and what the last one met, and what to do."""
    found = workers(monkeypatch, *[CONTENDED] * (n_tries - 1), STOLEN, QUIET)
    message = (
        rf"^probes: disturbed in each of {n_tries} tries, at last the hypervisor took 30 % of the time \(limit 5 %\) "
        r"of the processors; run it when nothing else runs$"
    )
    with pytest.raises(MeasurementError, match=message):
        run_undisturbed(PLAN, HOST, n_tries=n_tries)
    assert len(found.plans) == n_tries


def test_threads_that_wait_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where threads waited for a processor, the error says for how long."""
    workers(monkeypatch, *[CONTENDED] * N_TRIES)
    with pytest.raises(MeasurementError, match=r"threads waited 50 % of the time \(limit 2 %\) for a processor"):
        run_undisturbed(PLAN, HOST)


def test_a_worker_that_fails_is_not_run_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """A failure is no disturbance: it would fail again."""
    runs: list[Plan] = []

    def failing(plan: Plan, **_: object) -> dict[str, Any]:
        runs.append(plan)
        raise MeasurementError("no such device")

    monkeypatch.setattr("perfsuite.measure.undisturbed.run_worker", failing)
    with pytest.raises(MeasurementError, match=r"^no such device$"):
        run_undisturbed(PLAN, HOST)
    assert runs == [PLAN]

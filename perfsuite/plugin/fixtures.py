"""The fixtures: ``perf`` judges a case, the suite's own or a third party's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pytest

from perfsuite.expectation.forecast import Expectation
from perfsuite.plugin.margins import marker_margin
from perfsuite.plugin.replay import ReplayClock
from perfsuite.plugin.session import PerfSession
from perfsuite.records.judgement import Judgement
from perfsuite.records.outcome import Outcome
from perfsuite.records.samples import CaseSamples

if TYPE_CHECKING:
    from hypothesis.strategies import DataObject

SESSION_KEY = pytest.StashKey[PerfSession]()
JUDGEMENT_KEY = pytest.StashKey[Judgement]()


class Perf:
    """Judges cases within a test."""

    def __init__(self, request: pytest.FixtureRequest, session: PerfSession) -> None:
        self._request = request
        self._session = session

    def judge(self, case_id: str) -> Judgement:
        """Judge one of the suite's cases: pass, fail or skip this test by its outcome."""
        margin = marker_margin(self._request.node)
        return self._conclude(self._session.judgement(case_id, marker_margin=margin))

    def hunt(self, case_id: str, data: DataObject) -> None:
        """Let a hunt draw a shape and judge it; the hunt's own verdict follows when Hypothesis is done."""
        hunts = self._session.hunts
        hunt = None if hunts is None else hunts.hunt(case_id)
        if hunt is not None:
            hunt.example(data)

    def conclude_hunt(self, case_id: str) -> None:
        """Judge a hunt by all its shapes: pass, fail or skip this test by the outcome."""
        if self._session.hunts is not None:
            self._session.hunts.finish(case_id)
        self.judge(case_id)

    def holds(self, name: str) -> None:
        """Check a statement about the sweeps: fail this test where it does not hold, skip it where nothing tells."""
        statement = self._session.statement(name)
        text = f"{statement.claim}: {statement.evidence}"
        self._request.node.user_properties.append(("perf_statement", text))
        if statement.holds is None:
            pytest.skip(f"undecided: {text}")
        if not statement.holds:
            pytest.fail(f"not so: {text}", pytrace=False)

    def check(
        self,
        case_id: str,
        samples_ns: Sequence[int],
        *,
        floor_ns: int | None = None,
        expected_ns: int | None = None,
        limit_ns: int | None = None,
    ) -> Judgement:
        """Judge latencies that the test itself measured, ns, one a replicate, against the bounds given."""
        samples = CaseSamples(case_id=case_id, samples_ns=tuple(samples_ns))
        expectation = Expectation(floor_ns=floor_ns, expected_ns=expected_ns, limit_ns=limit_ns)
        kind = case_id.split("/", 1)[0]
        margin = marker_margin(self._request.node)
        return self._conclude(self._session.judge_foreign(samples, kind, expectation, marker_margin=margin))

    def _conclude(self, judgement: Judgement) -> Judgement:
        if JUDGEMENT_KEY in self._request.node.stash:
            pytest.fail("perf judges one case a test; parametrize the test for more", pytrace=False)
        self._request.node.stash[JUDGEMENT_KEY] = judgement
        self._request.node.user_properties.append(("perf_outcome", judgement.outcome.value))
        if judgement.measured_ns is not None:
            self._request.node.user_properties.append(("perf_measured_ns", judgement.measured_ns))
        if judgement.samples_ns and judgement.outcome is not Outcome.INVALID:
            self._replay(judgement)
        text = f"{judgement.outcome.value}: {judgement.case_id}: {judgement.reason}"
        if judgement.outcome.fails or (self._session.config.strict and not judgement.outcome.decides):
            pytest.fail(text, pytrace=False)
        if not judgement.outcome.decides and judgement.outcome is not Outcome.NEW:
            pytest.skip(text)
        return judgement

    def _replay(self, judgement: Judgement) -> None:
        """Hand the samples to pytest-benchmark, under the case's id and with a timer that replays them."""
        request = self._request
        if not request.config.pluginmanager.hasplugin("benchmark"):
            return
        request.node.add_marker(pytest.mark.benchmark(timer=ReplayClock(judgement.samples_ns)))
        benchmark = request.getfixturevalue("benchmark")
        benchmark.name = benchmark.fullname = judgement.case_id
        benchmark.group = judgement.kind
        benchmark.extra_info["outcome"] = judgement.outcome.value
        benchmark.pedantic(lambda: None, rounds=len(judgement.samples_ns), iterations=1)


@pytest.fixture
def perf(request: pytest.FixtureRequest) -> Perf:
    """Judge performance cases; needs ``--device``."""
    session = request.config.stash.get(SESSION_KEY, None)
    if session is None:
        pytest.skip("performance cases need --device=NAME, such as --device=host")
    return Perf(request, session)

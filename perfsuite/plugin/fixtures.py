"""What the fixture ``perf`` gives a test: it judges a case, the suite's own or a third party's."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from numbers import Real
from typing import TYPE_CHECKING, cast

import pytest

from perfsuite.errors import MeasurementError
from perfsuite.experiments.session import PerfSession
from perfsuite.plugin.values import marker_margin
from perfsuite.records.case import Expectation
from perfsuite.records.fingerprint import Fingerprint
from perfsuite.records.outcome import CaseSamples, Judgement, Outcome
from perfsuite.report.exports.junit import case_properties, run_properties

if TYPE_CHECKING:
    import pyopencl as cl
    from hypothesis.strategies import DataObject

    from perfsuite.experiments.shapes.hunts import ShapeHunts

SESSION_KEY = pytest.StashKey[PerfSession]()
#: No latency; what is written must be read again.
_FOREVER_NS = 2**63

JUDGEMENT_KEY = pytest.StashKey[Judgement]()
_SUITE_IS_TOLD_KEY = pytest.StashKey[bool]()


class Perf:
    """Judges cases within a test."""

    def __init__(
        self,
        request: pytest.FixtureRequest,
        session: PerfSession,
        add_samples: Callable[[Judgement], None] | None = None,
    ) -> None:
        self._request = request
        self._session = session
        self._add_samples = add_samples

    def judge(self, case_id: str) -> Judgement:
        """Judge one of the suite's cases: pass, fail or skip this test by its outcome."""
        margin = marker_margin(self._request.node)
        return self._conclude(self._session.judgement(case_id, marker_margin=margin))

    def hunt(self, case_id: str, data: DataObject) -> None:
        """Let a hunt draw a shape and judge it; the hunt's own verdict follows when Hypothesis is done."""
        hunt = self._hunts(case_id).hunt(case_id)
        if hunt is not None:
            hunt.example(data)

    def _hunts(self, case_id: str) -> ShapeHunts:
        return cast("ShapeHunts", self._session.experiment(self._session.cases[case_id].kind))

    def conclude_hunt(self, case_id: str) -> None:
        """Judge a hunt by all its shapes: pass, fail or skip this test by the outcome."""
        self._hunts(case_id).finish(case_id)
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
        samples_ns: Sequence[float],
        *,
        floor_ns: int | None = None,
        expected_ns: int | None = None,
        limit_ns: int | None = None,
    ) -> Judgement:
        """Judge latencies that the test itself measured, ns, one a replicate, against the bounds given.

        Parts of a nanosecond are rounded; what is no time fails the test.
        """
        samples = CaseSamples(case_id=case_id, samples_ns=_whole_ns(case_id, samples_ns))
        expectation = Expectation(floor_ns=floor_ns, expected_ns=expected_ns, limit_ns=limit_ns)
        return self._judged(samples, expectation)

    def opencl(
        self,
        queue: cl.CommandQueue,
        kernel: cl.Kernel,
        global_size: tuple[int, ...],
        local_size: tuple[int, ...] | None,
        *arguments: object,
        name: str,
        check: Callable[[], object] | None = None,
        floor_ns: int | None = None,
        expected_ns: int | None = None,
        limit_ns: int | None = None,
    ) -> Judgement:
        """Time a kernel of pyopencl on a queue that profiles, and judge the case ``opencl/<name>``.

        The first launch is for `check`, which returns False, or raises, where the outputs are wrong. A launch that
        fails, fails the test.
        """
        try:
            samples, fingerprint = self._session.own.KernelLaunch(
                queue=queue, kernel=kernel, global_size=global_size, local_size=local_size, arguments=arguments
            ).samples(name, self._session.config.n_replicates, check)
        except MeasurementError as error:
            pytest.fail(str(error), pytrace=False)
        expectation = Expectation(floor_ns=floor_ns, expected_ns=expected_ns, limit_ns=limit_ns)
        return self._judged(samples, expectation, fingerprint)

    def count(
        self, name: str, function: Callable[..., object], *arguments: object, limit_s: float = 600.0
    ) -> Judgement:
        """Count what a call of a function does, and judge the case ``counted/<name>`` by what was committed.

        The function is one that a module holds, and its arguments can be pickled: two processes call it, each some
        times, and are stopped after `limit_s`. A call that fails, fails the test.
        """
        margin = marker_margin(self._request.node)
        try:
            judgement = self._session.judge_call(
                name, function, arguments, self._request.module, limit_s=limit_s, margin_ratio=margin
            )
        except MeasurementError as error:
            wrong = str(error)
        else:
            return self._conclude(judgement)
        pytest.fail(f"{name}: {wrong}", pytrace=False)

    def _judged(
        self, samples: CaseSamples, expectation: Expectation, fingerprint: Fingerprint | None = None
    ) -> Judgement:
        kind, margin = samples.case_id.split("/", 1)[0], marker_margin(self._request.node)
        judge = self._session.judge_foreign
        return self._conclude(judge(samples, kind, expectation, marker_margin=margin, fingerprint=fingerprint))

    def _conclude(self, judgement: Judgement) -> Judgement:
        if JUDGEMENT_KEY in self._request.node.stash:
            pytest.fail("perf judges one case a test; parametrize the test for more", pytrace=False)
        self._request.node.stash[JUDGEMENT_KEY] = judgement
        self._request.node.user_properties.extend(case_properties(judgement).items())
        if self._add_samples and judgement.samples_ns and judgement.outcome is not Outcome.INVALID:
            self._add_samples(judgement)
        text = f"{judgement.outcome.value}: {judgement.case_id}: {judgement.reason}"
        if judgement.outcome.fails or (self._session.config.strict and not judgement.outcome.decides):
            pytest.fail(text, pytrace=False)
        if not judgement.outcome.decides and judgement.outcome is not Outcome.NEW:
            pytest.skip(text)
        return judgement


def _whole_ns(case_id: str, samples_ns: Sequence[float]) -> tuple[int, ...]:
    for sample_ns in samples_ns:
        if isinstance(sample_ns, bool) or not isinstance(sample_ns, Real) or not 0 <= sample_ns < _FOREVER_NS:
            pytest.fail(f"{case_id}: samples_ns has {sample_ns!r}, expected times in ns of 0 or more", pytrace=False)
    return tuple(round(sample_ns) for sample_ns in samples_ns)


def perf_of(request: pytest.FixtureRequest, add_samples: Callable[[Judgement], None] | None = None) -> Perf:
    """Return what judges the cases of a test, and hands samples to another plugin where there is one."""
    session = request.config.stash[SESSION_KEY]
    if not request.config.stash.get(_SUITE_IS_TOLD_KEY, False):
        request.config.stash[_SUITE_IS_TOLD_KEY] = True
        _tell_suite(request, session)
    return Perf(request, session, add_samples)


def _tell_suite(request: pytest.FixtureRequest, session: PerfSession) -> None:
    """Let a JUnit report say, once, what its figures are of."""
    record = request.getfixturevalue("record_testsuite_property")
    run = session.config
    told = run_properties(run.profile.name, run.workload.prefix, session.subjects(), run.origin)
    for name, value in told.items():
        record(name, value)

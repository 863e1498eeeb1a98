"""What a session leaves behind: the record of the run, and that of what it saw."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain

from perfsuite import __version__
from perfsuite.expectation.cases import Case
from perfsuite.expectation.roofline.work import work_of
from perfsuite.experiments.session import PerfSession
from perfsuite.records.observation import CaseWork, Observation
from perfsuite.report.run_file import RunFile


def run_file(session: PerfSession) -> RunFile:
    """Gather what ``run.json`` holds."""
    config, measured, groups = session.config, session.measured, session.groups
    return RunFile(
        suite_version=__version__,
        started_at=session.started_at,
        device=config.profile.name,
        workload=config.workload.prefix,
        subjects=session.subjects(),
        fingerprints={name: dict(group.fingerprint) for name, group in groups.items()},
        ceilings=session.forecasts.ceilings,
        durations_s=measured.durations_s,
        operator_share_ratio={
            phase: share for group in groups.values() for phase, share in group.operator_share_ratio.items()
        },
        joules_per_token={
            phase: joules for group in groups.values() for phase, joules in group.joules_per_token.items()
        },
        n_discarded_replicates={name: group.n_discarded for name, group in groups.items()},
        sentinels_ns={name: group.sentinels_ns for name, group in groups.items()},
        covariates={name: group.covariates for name, group in groups.items()},
        device_notes=measured.notes,
        is_injected=bool(config.inject_op or config.inject_phases),
        is_interrupted=session.is_interrupted,
        peak_rss_bytes=max((group.peak_rss_bytes or 0 for group in groups.values()), default=0) or None,
        judgements=tuple(session.judgements.values()),
        against=config.old_text if config.is_against else None,
        engines=session.stored.kept_engines,
        attribution=session.attribution(),
        origin=config.origin,
    )


def observation(session: PerfSession) -> Observation:
    """Gather what ``observation.json`` holds: the groups' own, and the work of the cases that were judged."""
    found = [group.observation for group in session.groups.values()]
    judged = (session.cases[case_id] for case_id in session.judgements if case_id in session.cases)
    states = chain.from_iterable(each.states for each in found)
    return Observation(
        tokens=tuple(chain.from_iterable(each.tokens for each in found)),
        timelines=tuple(chain.from_iterable(each.timelines for each in found)),
        graphs=tuple(chain.from_iterable(each.graphs for each in found)),
        works=tuple(_works(judged)),
        states=tuple(sorted(states, key=lambda each: each.at_s)),
    )


def _works(cases: Iterable[Case]) -> Iterator[CaseWork]:
    """Yield the work of the cases whose cost is known, as the roofline counts it.

    Of a phase parameters and the KV cache are the traffic, of all others activations are too (`Work`).
    """
    for case in cases:
        work = work_of(case.costs, counts_activations=case.kind != "phase")
        if work.parts:
            yield CaseWork(case_id=case.case_id, flops=work.flops, moved_bytes=work.traffic_bytes)

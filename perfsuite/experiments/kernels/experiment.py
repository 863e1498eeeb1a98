"""The suite's own OpenCL kernels: beside the sources that made their baseline, launch by launch, or by themselves.

All pairs come of one process, a round each, and are judged by one look. What a process draws once, as where the code of
a program lies, is no part of their scatter.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from operator import itemgetter
from pathlib import Path
from typing import Any

from perfsuite.device.work_folder import work_folder
from perfsuite.errors import AskedError, MeasurementError, OpenClError
from perfsuite.expectation.cases import kernel_cases
from perfsuite.experiments.forecasts import Forecasts
from perfsuite.experiments.kernel_samples import dropped_text, kernel_samples, tick_of
from perfsuite.experiments.pairs import device_notes, paired_judgements
from perfsuite.experiments.progress import ProgressLine
from perfsuite.experiments.protocol import Experiment, Selection
from perfsuite.experiments.replicates import GroupWitness, collect_replicates, peak_rss_bytes
from perfsuite.experiments.run_config import RunConfig
from perfsuite.experiments.samples import GroupSamples
from perfsuite.experiments.stored import EngineSession, StoredBaselines
from perfsuite.measure.engine_store import kernels_folder
from perfsuite.measure.environment import environment_opencl_vendors
from perfsuite.measure.kernel_record import KernelRecord
from perfsuite.measure.kernel_runtime import lack_of_driver
from perfsuite.measure.plan import DevicesPlan, KernelPlan
from perfsuite.measure.schedule import Payload, Rule, Series, others_complaint, replicates_of
from perfsuite.records.case import KERNELS, Case
from perfsuite.trace.samples import midmean
from perfsuite.verdict.judge_pairs import NO_EXPECTATION
from perfsuite.verdict.pairs import Suite, verdicts_at

#: What the kernels may take of a run, s.
_BUDGET_S = 20.0
#: What a process may take of it, which has to start and to end besides, and launches of a kernel in a round at most.
_PROCESS_BUDGET_NS, _REPETITIONS = 7_000_000_000, 10
#: Pairs of a process at most; one that had competition is followed by one more, where there is time.
_ROUNDS, _MOST_PROCESSES = 16, 2


def prepared(config: RunConfig, *_: object, **__: object) -> RunConfig:
    """Return a run without kernels where its board has no device for them."""
    if config.is_against:
        return config
    is_local = config.board.is_local
    lack = lack_of_driver(environment_opencl_vendors()) if is_local else _lack_of_opencl(config)
    return replace(config, left_out={KERNELS: lack, **config.left_out}) if lack else config


def open_experiments(config: RunConfig, forecasts: Forecasts, stored: StoredBaselines) -> tuple[Experiment, ...]:
    """Return the experiment, of all kernels of the suite."""
    return (Kernels(config=config, forecasts=forecasts, stored=stored),)


@dataclass(kw_only=True)
class Kernels(Experiment):
    """The kernels of a run."""

    config: RunConfig
    forecasts: Forecasts
    stored: StoredBaselines
    kind: str = "kernel"
    name: str = KERNELS
    has_reference: bool = True
    shares_budget: bool = True

    def cases(self) -> Iterator[Case]:
        """Enumerate the catalogue."""
        yield from kernel_cases()

    def n_steps(self, case_ids: Collection[str]) -> int:
        """Return the replicates."""
        return self.config.n_replicates

    def measure(self, case_ids: Selection, progress: ProgressLine) -> GroupSamples:
        """Measure the kernels beside the sources that made their baseline, where these are at hand."""
        notes: tuple[str, ...] = ()
        cases, device = [case for case in self.cases() if case.case_id in case_ids], opencl_device(self.config)
        fingerprint = kernel_fingerprint(self.config, device)
        beside = self.stored.at_hand(self.name, fingerprint) if self.config.baseline_mode == "compare" else None
        group = GroupSamples(
            fingerprint=fingerprint, on_processor=device["type"] == "cpu", description=description(device)
        )
        if beside is not None:
            try:
                return self._measured_beside(group, cases, *beside, case_ids, progress)
            except MeasurementError as error:
                notes = (f"the kernels of the baseline do not run here, so its times judge: {error}",)
        return self._measured(group, cases, notes, progress)

    def keep_engine(self, group: GroupSamples) -> str:
        """Keep the suite's own sources."""
        return self.config.board.keep(None, group.engine_version)

    def _measured(
        self, group: GroupSamples, cases: Sequence[Case], notes: Sequence[str], progress: ProgressLine
    ) -> GroupSamples:
        """Run them in `n_replicates` fresh processes, or as many as there is time for.

        A stored baseline is of several processes, and what each of them draws is part of its spread; several rounds of
        one process would spread less than its next run does.

        Raises MeasurementError: a kernel does not build or run.
        """
        board, environment = self.config.board, self.config.board.facts().opencl_environment
        with _built_folder(self.config) as built_dir:
            plan = replace(_plan(self.config, cases), built_dir=built_dir)
            replicates = collect_replicates(
                self.config,
                lambda: board.run(plan, extra_environment=environment),
                others_complaint,
                "OpenCL kernels",
                progress,
                group=self.name,
                budget_s=_BUDGET_S,
            )
        by_case: dict[str, list[KernelRecord]] = defaultdict(list)
        records = _records(replicates.shown_payloads, "kernels")
        for record in records:
            by_case[record.case_id].append(record)
        tick_ns, dropped = tick_of(records), (f"{group.description}: {text}" for text in dropped_text(records))
        return replace(
            replicates.group,
            samples={
                case.case_id: kernel_samples(case.case_id, by_case[case.case_id], replicates.problems, tick_ns)
                for case in cases
            },
            notes=(*replicates.group.notes, *dropped, *notes),
            fingerprint=group.fingerprint,
            on_processor=group.on_processor,
            description=group.description,
        )

    def _measured_beside(
        self,
        group: GroupSamples,
        cases: Sequence[Case],
        engine: EngineSession,
        folder: Path,
        markers: Selection,
        progress: ProgressLine,
    ) -> GroupSamples:
        """Compare them with the sources in a folder, launch by launch.

        Raises MeasurementError: a kernel of either side does not build or run.
        """
        config, (session, differences) = self.config, engine
        margins = config.margins.of_cases(cases, markers)
        witness = GroupWitness(
            config=config, group=self.name, what="pairs of OpenCL kernels", progress=progress, awaits_quiet=False
        )
        plan = replace(
            _plan(config, cases),
            n_rounds=_ROUNDS,
            old_kernels_dir=str(kernels_folder(folder)),
            order_seed=random.randrange(1 << 32),
        )
        series = Series(
            take=replicates_of(config.board, lambda: plan, extra_environment=config.board.facts().opencl_environment),
            rules=(Rule(profile=config.profile, complain=others_complaint),),
            keep=itemgetter(0),
            witness=witness,
            budget_s=_BUDGET_S,
        )
        with series.broken_off(by_failure=False):
            series.extend(1, most_left_out=_MOST_PROCESSES)
        sides = _sides(series.valid)
        problems = tuple(filter(None, [series.shortage("processes", is_enough=bool(series.valid))]))
        judgements = paired_judgements(
            cases,
            sides,
            verdicts_at(sides, margins, Suite(), share_ratio=1.0),
            margins,
            lambda case: (*_wrong(case, series.valid), *problems),
            self.forecasts.expectation if group.on_processor else lambda case: NO_EXPECTATION,
        )
        return replace(
            witness.taken(series),
            judgements=judgements,
            fingerprint=group.fingerprint,
            peak_rss_bytes=peak_rss_bytes(series.valid),
            on_processor=group.on_processor,
            description=f"{group.description}, beside the sources of {session.recorded_at[:16]}",
            notes=device_notes(config, session, judgements, differences),
        )


@contextmanager
def _built_folder(config: RunConfig) -> Iterator[str | None]:
    """Give a folder of this run for what its processes build, which takes longer than measuring; none on a board."""
    if config.board.is_local:
        with work_folder() as folder:
            yield str(folder)
    else:
        yield None


def _plan(config: RunConfig, cases: Sequence[Case]) -> KernelPlan:
    """Return the plan of one process."""
    return KernelPlan(
        case_ids=tuple(case.case_id for case in cases),
        platform=config.platform,
        n_repetitions=_REPETITIONS,
        budget_ns=_PROCESS_BUDGET_NS,
        seed=0,
        log_dir=str(config.log_dir),
        n_threads=config.n_threads,
    )


def kernel_fingerprint(config: RunConfig, device: Mapping[str, Any]) -> dict[str, str]:
    """Return what must be equal for two runs of the kernels to be comparable."""
    return {
        **config.board.facts().fingerprint,
        "opencl_platform": f"{device['platform_name']}, {device['platform_version']}",
        "opencl_device": device["device_name"],
        "opencl_driver": device["driver_version"],
    }


def description(device: Mapping[str, Any]) -> str:
    """Name a device, for the header of a report."""
    return f"{device['device_name']} ({device['platform_name']} {device['driver_version']})"


def opencl_device(config: RunConfig) -> dict[str, Any]:
    """Return the device that the kernels run on.

    Raises OpenClError: there is none, and none was asked for; MeasurementError: the one that was asked for is not
    there.
    """
    board, plan = config.board, DevicesPlan(platform=config.platform)
    try:
        chosen: dict[str, Any] = board.run(plan, extra_environment=board.facts().opencl_environment)["chosen"]
    except AskedError:  # no plan depends on it
        return dict.fromkeys(("platform_name", "platform_version", "device_name", "driver_version", "type"), "unknown")
    except MeasurementError as error:
        if config.opencl_platform:
            raise
        raise OpenClError(str(error)) from error
    return chosen


def _lack_of_opencl(config: RunConfig) -> str | None:
    """Return why a board has no device for the kernels; None where it has one, or a platform was named.

    A driver that crashes is no lack: its kernels are measured, and invalid.
    """
    if config.platform:
        return None
    try:
        opencl_device(config)
    except OpenClError as error:
        return str(error) if str(error).startswith("OpenCL: ") else None
    return None


def _sides(payloads: Sequence[Payload]) -> dict[str, tuple[tuple[int, ...], tuple[int, ...]]]:
    """Return old and new samples, ns, of each case: a round is a pair, where both of its sides have times."""
    found = {}
    for old, new in zip(_records(payloads, "old_kernels"), _records(payloads, "kernels"), strict=True):
        rounds = [each for each in zip(old.rounds_ns, new.rounds_ns, strict=True) if all(each)]
        old_ns, new_ns = (tuple(round(midmean(each[side])) for each in rounds) for side in (0, 1))
        found[old.case_id] = old_ns, new_ns
    return found


def _wrong(case: Case, payloads: Sequence[Payload]) -> tuple[str, ...]:
    """Say why nothing can be said of a case: it computes wrongly, or too few of its times can be right."""
    new = _records(payloads, "kernels")
    sides = (new, [each for each in _records(payloads, "old_kernels") if each.is_correct])
    own = ([each for each in side if each.case_id == case.case_id] for side in sides)
    return tuple(
        dict.fromkeys(text for each in own for text in kernel_samples(case.case_id, each, (), tick_of(new)).problems)
    )


def _records(payloads: Sequence[Payload], side: str) -> list[KernelRecord]:
    return [KernelRecord.from_plain(plain) for payload in payloads for plain in payload[side]]

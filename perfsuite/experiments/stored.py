"""The stored baselines of a run: what a case is compared with, what they show besides, and a new session of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from pathlib import Path

from perfsuite import __version__
from perfsuite.experiments.run_config import RunConfig
from perfsuite.experiments.samples import GroupSamples
from perfsuite.records.case import ENGINE_GROUP, GROUP_OF_KIND, OWN_GROUP
from perfsuite.records.fingerprint import ENGINE, Fingerprint, asked_fields, differences, machine_fields
from perfsuite.records.outcome import Judgement, Outcome
from perfsuite.units import format_count
from perfsuite.verdict.baseline import BaselineFile, baseline_path, changing, read_baselines, write_baselines
from perfsuite.verdict.changes import find_creep, unknown_creep
from perfsuite.verdict.compare import BaselineMatch
from perfsuite.verdict.drift import fitted_weights, suspicion
from perfsuite.verdict.entry import BaselineEntry, StoredSession, entry_with
from perfsuite.verdict.match import match_case
from perfsuite.verdict.outputs import other_outputs, output_errors

#: What was measured, by group.
Groups = Mapping[str, GroupSamples]

#: A session whose engine can be measured again, and how the machine that made it differs from this one.
EngineSession = tuple[StoredSession, tuple[str, ...]]

#: What has nothing stored to be compared with on this machine.
_WITHOUT_REFERENCE = (Outcome.NEW, Outcome.INCOMPARABLE)

#: What is no reference for later runs.
_UNUSABLE = (Outcome.INVALID, Outcome.IMPOSSIBLE)

#: What was judged, by group.
Judgements = Mapping[str, Sequence[Judgement]]


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredBaselines:
    """The files of a run's groups, as they were when it began."""

    config: RunConfig
    #: By group: what is committed, and the reference that the first run of a checkout leaves for itself, where nothing
    #: is committed for this device.
    read: dict[str, tuple[BaselineFile, BaselineFile]] = field(default_factory=dict)
    #: By group: how far its cases follow the sentinels.
    fitted: dict[str, Mapping[str, float]] = field(default_factory=dict)
    #: By group: what made the samples of this run, by its id in the board's store.
    kept_engines: dict[str, str] = field(default_factory=dict)
    #: By group: that its engine computes something else than the newest session's did, or nothing.
    differing: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def files(self, name: str) -> tuple[BaselineFile, BaselineFile]:
        """Return the committed and the local file of a group, read once; that of the engine is its model's.

        Raises BaselineError: one cannot be read, or is none of baselines.
        """
        if name not in self.read:
            config = self.config
            stem = config.workload.weights.name if name == ENGINE_GROUP else name
            committed, local = (
                read_baselines(baseline_path(folder, config.profile.name, stem))
                for folder in (config.baseline_dir, config.local_baseline_dir)
            )
            self.read[name] = committed, local
        return self.read[name]

    def match(self, case_id: str, group: str, groups: Groups) -> BaselineMatch:
        """Return what a case is compared with; nothing where nothing must be compared, or nothing was measured."""
        if self.config.baseline_mode != "compare" or group not in groups:
            return BaselineMatch()
        fingerprint = groups[group].fingerprint
        return match_case(
            self._file(group, fingerprint),
            fingerprint,
            case_id,
            sentinels_ns=groups[group].sentinels_ns,
            weights=self._weights(group, fingerprint),
            board=self._board,
        )

    def _weights(self, group: str, fingerprint: Fingerprint) -> Mapping[str, float]:
        """Return how far cases follow the sentinels, by the history of the device where that is long enough."""
        if group not in self.fitted:
            entries = self._file(group, fingerprint).comparable(fingerprint, self._board)
            stated = self.config.profile.sentinel_weight_ratio
            self.fitted[group] = fitted_weights(entries[0], stated) if entries else stated
        return self.fitted[group]

    def other_outputs(self, group: str, groups: Groups) -> tuple[str, ...]:
        """Say that a group's processes compute something else than what is stored of the same prompts, if they do."""
        if group not in self.differing:
            own, entries = groups[group].outputs, self._entries({group: groups[group]}).get(group, ())
            sessions = sorted((each for entry in entries for each in entry.sessions), key=attrgetter("recorded_at"))
            stored = ((each.recorded_at, each.outputs) for each in reversed(sessions) if each.outputs is not None)
            found = next(((when, kept) for when, kept in stored if own and kept.prompts == own[0].prompts), None)
            problem = found and other_outputs(
                (output_errors(found[1], each) for each in own),
                f"this run and the baseline of {found[0][:16]} compute different outputs",
            )
            self.differing[group] = (problem,) if problem else ()
        return self.differing[group]

    def case_ids(self, group: str, settings: Fingerprint) -> tuple[str, ...]:
        """Return the cases of a group that entries hold whose fingerprints have these fields."""
        fitting = (
            each for file in self.files(group) for each in file.entries if settings.items() <= each.fingerprint.items()
        )
        return tuple(dict.fromkeys(case_id for entry in fitting for case_id in entry.case_ids))

    def notes(self, groups: Groups, judgements: Judgements) -> tuple[str, ...]:
        """Say what the stored baselines show and no verdict does: slow creep, and a machine that is not as it was."""
        entries = self._entries(groups)
        crept = [text for name, found in entries.items() for text in self._creep(found, judgements[name])]
        suspicions = (suspicion(found[0].sessions, groups[name].sentinels_ns) for name, found in entries.items())
        return (*crept, *(text for text in suspicions if text))

    def record(self, groups: Groups, judgements: Judgements, *, recorded_at: str) -> tuple[str, ...]:
        """Add what was measured properly as a session of each group, and say how many cases went into which file."""
        found = {name: [each for each in judgements[name] if each.outcome not in _UNUSABLE] for name in groups}
        self._write(groups, found, recorded_at)
        counted = ((self.files(name)[0].path, len(cases)) for name, cases in found.items() if cases)
        return tuple(f"{format_count(n_cases, 'case')} recorded in {path}" for path, n_cases in counted)

    def keep_first(self, groups: Groups, judgements: Judgements, *, recorded_at: str) -> tuple[str, ...]:
        """Keep what has no reference yet as this checkout's own, and say so; nothing is committed by that."""
        kept = {
            name: [each for each in judgements[name] if each.samples_ns and each.outcome in _WITHOUT_REFERENCE]
            for name in groups
        }
        self._write(groups, kept, recorded_at, is_local=True)
        n_cases = sum(map(len, kept.values()))
        if not n_cases:
            return ()
        where = self.config.local_baseline_dir
        return (f"{format_count(n_cases, 'case')} kept in {where}: the next run is compared with this one",)

    def _engine_sessions(self, name: str, fingerprint: Fingerprint, within: str) -> tuple[EngineSession, ...]:
        """Return the sessions of a group that name an engine and hold cases of this run, the best first.

        They are of what was asked for, on any machine but another board, the most similar first; then what is
        committed, what has the most of the cases, and the newest.
        """
        asked, here = asked_fields(fingerprint), machine_fields(fingerprint)
        ranked = [
            ((len(differing), is_local, -n_cases), session, differing)
            for is_local, baselines in enumerate(self.files(name))
            for entry in baselines.entries
            if asked_fields(entry.fingerprint) == asked and entry.board in (self._board, None)
            for differing in (differences(machine_fields(entry.fingerprint), here),)
            for session in entry.sessions
            if session.engine_id is not None and (n_cases := sum(within in each for each in session.samples_ns))
        ]
        newest = sorted(ranked, key=lambda each: each[1].recorded_at, reverse=True)
        return tuple((session, differing) for _, session, differing in sorted(newest, key=lambda each: each[0]))

    def at_hand(self, name: str, fingerprint: Fingerprint, within: str = "") -> tuple[EngineSession, Path] | None:
        """Return the first of them whose engine the board's store holds, and where; None where it holds none.

        Cases of this run are those whose ids have `within`: a file of a model holds all its scenarios.

        Raises EngineError: it is damaged.
        """
        for session, differing in self._engine_sessions(name, fingerprint, within):
            assert session.engine_id is not None
            folder = self.config.board.kept_folder(session.engine_id)
            if folder is not None:
                return (session, differing), folder
        return None

    def _write(
        self, groups: Groups, found: Mapping[str, Sequence[Judgement]], recorded_at: str, *, is_local: bool = False
    ) -> None:
        """Add a session of each group that has cases, all of them or none."""
        paths = {name: self.files(name)[is_local].path for name, cases in found.items() if cases}
        for folder in {path.parent for path in paths.values()}:
            with changing(folder):
                stored = {name: read_baselines(path) for name, path in paths.items()}  # anew: others record too
                write_baselines(
                    *(
                        each.with_session(
                            groups[name].fingerprint,
                            self._session(name, groups[name], found[name], recorded_at),
                            self._board,
                        )
                        for name, each in stored.items()
                    )
                )

    def _session(self, name: str, group: GroupSamples, found: Sequence[Judgement], recorded_at: str) -> StoredSession:
        return StoredSession(
            recorded_at=recorded_at,
            suite_version=__version__,
            samples_ns={each.case_id: each.samples_ns for each in found},
            sentinels_ns=group.sentinels_ns,
            covariates=group.covariates,
            engine_id=self.kept_engines.get(name),
            engine_version=group.fingerprint.get(ENGINE),
            outputs=group.outputs[0] if group.outputs else None,
        )

    def _file(self, name: str, fingerprint: Fingerprint) -> BaselineFile:
        """Return the committed file of a group, or the checkout's own where only that has anything comparable."""
        committed, local = self.files(name)
        is_local = not committed.comparable(fingerprint, self._board) and local.comparable(fingerprint, self._board)
        return local if is_local else committed

    @property
    def _board(self) -> str | None:
        """The board whose baselines these are; it is known once the device was reached."""
        return self.config.origin.kept_by

    def _entries(self, groups: Groups) -> dict[str, tuple[BaselineEntry, ...]]:
        """Return, by group, what this run is compared with; nothing where nothing is compared."""
        if self.config.baseline_mode != "compare" or self.config.is_against:
            return {}
        found = {
            name: self._file(name, group.fingerprint).comparable(group.fingerprint, self._board)
            for name, group in groups.items()
        }
        return {name: entries for name, entries in found.items() if entries}

    def _creep(self, entries: Sequence[BaselineEntry], judged: Sequence[Judgement]) -> Iterator[str]:
        """Tell of creep among the judged cases of a group, each kind by its own margin."""
        for entry in entries:
            own = [each for each in judged if entry_with(entries, each.case_id) is entry]
            weights = fitted_weights(entry, self.config.profile.sentinel_weight_ratio)
            for kind in dict.fromkeys(each.kind for each in own):
                case_ids = [each.case_id for each in own if each.kind == kind]
                margin_ratio = self.config.margins.margin_ratio(kind)
                crept = find_creep(entry, case_ids, margin_ratio=margin_ratio, weights=weights)
                yield from (each.text for each in crept)
            if unknown := unknown_creep(entry, [each.case_id for each in own], weights):
                yield unknown


def open_baselines(config: RunConfig) -> StoredBaselines:
    """Read the files of all groups.

    Raises BaselineError: a file cannot be read, or is none of baselines.
    """
    stored = StoredBaselines(config=config)
    for name in sorted({*GROUP_OF_KIND.values(), OWN_GROUP}):
        stored.files(name)
    return stored

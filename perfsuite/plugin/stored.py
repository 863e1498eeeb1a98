"""The stored baselines of a run: what a case is compared with, what they show besides, and a new session of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from perfsuite import __version__
from perfsuite.plugin.options import RunConfig
from perfsuite.plugin.replicates import GroupSamples
from perfsuite.records.case_groups import OWN_GROUP
from perfsuite.records.judgement import Judgement
from perfsuite.records.outcome import Outcome
from perfsuite.verdict.baseline import BaselineFile, baseline_path, read_baselines, write_baselines
from perfsuite.verdict.compare import BaselineMatch
from perfsuite.verdict.creep import Creep, find_creep
from perfsuite.verdict.drift import suspicion
from perfsuite.verdict.entry import BaselineEntry, StoredSession, entry_with
from perfsuite.verdict.match import match_case

#: What was measured, by group.
Groups = Mapping[str, GroupSamples]

#: What was judged, by group.
Judgements = Mapping[str, Sequence[Judgement]]


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredBaselines:
    """The files of a run's groups, as they were when it began."""

    config: RunConfig
    files: Mapping[str, BaselineFile]

    def match(self, case_id: str, group: str, groups: Groups) -> BaselineMatch:
        """Return what a case is compared with; nothing where nothing is to be compared, or nothing was measured."""
        if self.config.baseline_mode != "compare" or group not in groups:
            return BaselineMatch()
        return match_case(
            self.files[group],
            groups[group].fingerprint,
            case_id,
            sentinels_ns=groups[group].sentinels_ns,
            weights=self.config.profile.sentinel_weight_ratio,
            board=self._board,
        )

    def notes(self, groups: Groups, judgements: Judgements) -> tuple[str, ...]:
        """Say what the stored baselines show and no verdict does: slow creep, and a machine that is not as it was."""
        entries = self._entries(groups)
        crept = [each.text for name, found in entries.items() for each in self._creep(found, judgements[name])]
        suspicions = (suspicion(found[0].sessions, groups[name].sentinels_ns) for name, found in entries.items())
        return (*crept, *(text for text in suspicions if text))

    def record(self, groups: Groups, judgements: Judgements, *, recorded_at: str) -> None:
        """Add what was measured properly as a session of each group."""
        for name, group in groups.items():
            valid = {each.case_id: each.samples_ns for each in judgements[name] if _is_reference(each)}
            if not valid:
                continue
            session = StoredSession(
                recorded_at=recorded_at,
                suite_version=__version__,
                samples_ns=valid,
                sentinels_ns=group.sentinels_ns,
                covariates=group.covariates,
            )
            stored = read_baselines(self.files[name].path)  # anew: the run took long, and others record too
            write_baselines(stored.with_session(group.fingerprint, session, self._board))

    @property
    def _board(self) -> str | None:
        """The board whose baselines these are; it is known once the device was reached."""
        return self.config.origin.kept_by

    def _entries(self, groups: Groups) -> dict[str, tuple[BaselineEntry, ...]]:
        """Return, by group, what this run is compared with; nothing where nothing is compared."""
        if self.config.baseline_mode != "compare" or self.config.old is not None:
            return {}
        found = {name: self.files[name].comparable(group.fingerprint, self._board) for name, group in groups.items()}
        return {name: entries for name, entries in found.items() if entries}

    def _creep(self, entries: Sequence[BaselineEntry], judged: Sequence[Judgement]) -> Iterator[Creep]:
        """Find creep among the judged cases of a group, each kind by its own margin."""
        for entry in entries:
            own = [each for each in judged if entry_with(entries, each.case_id) is entry]
            for kind in dict.fromkeys(each.kind for each in own):
                yield from find_creep(
                    entry,
                    [each.case_id for each in own if each.kind == kind],
                    margin_ratio=self.config.margins.margin_ratio(kind),
                    weights=self.config.profile.sentinel_weight_ratio,
                )


def open_baselines(config: RunConfig) -> StoredBaselines:
    """Read the files of all groups.

    Raises
    ------
    BaselineError
        A file cannot be read, or is none of baselines.
    """
    names = {"llama": config.workload.weights.name, "kernels": "kernels", "roofline": "roofline", OWN_GROUP: OWN_GROUP}
    paths = {group: baseline_path(config.baseline_dir, config.profile.name, name) for group, name in names.items()}
    return StoredBaselines(config=config, files={group: read_baselines(path) for group, path in paths.items()})


def _is_reference(judgement: Judgement) -> bool:
    return judgement.outcome not in (Outcome.INVALID, Outcome.IMPOSSIBLE)

"""Everything that a run was asked for, resolved and checked."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from perfsuite.device.profile import DEFAULT_MARGIN_RATIO, Profile
from perfsuite.measure.board.protocol import Board, build_logs
from perfsuite.records.case import Case
from perfsuite.records.history_place import HistoryPlace
from perfsuite.records.outcome import SUSPECT_EXIT
from perfsuite.records.run_origin import NO_ORIGIN, RunOrigin

if TYPE_CHECKING:
    from perfsuite.expectation.llama_workload import LlamaWorkload
    from perfsuite.experiments.shapes.request import HuntRequest
    from perfsuite.measure.engine import Engine
    from perfsuite.measure.opencl_backend import OpenClBackend
    from perfsuite.verdict.entry import StoredSession


@dataclass(frozen=True, slots=True, kw_only=True)
class KindMargins:
    """What one source says, about all kinds of cases or about some."""

    any_ratio: float | None = None
    by_kind_ratio: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))

    def find(self, kind: str) -> float | None:
        """Return the margin of a kind; what is stated of the kind itself goes before what is stated of all."""
        return self.by_kind_ratio.get(kind, self.any_ratio)


NOTHING_SAID = KindMargins()


@dataclass(frozen=True, slots=True, kw_only=True)
class Margins:
    """The margins of a run by their source; the most specific one that says something wins."""

    command_line: KindMargins = NOTHING_SAID
    ini: KindMargins = NOTHING_SAID
    profile: KindMargins = NOTHING_SAID

    def margin_ratio(self, kind: str, marker: float | None = None, default: float = DEFAULT_MARGIN_RATIO) -> float:
        """Return the margin of a case: command line, marker on the test, ini file, device profile, default."""
        sources = (self.command_line.find(kind), marker, self.ini.find(kind), self.profile.find(kind))
        return next((ratio for ratio in sources if ratio is not None), default)

    def of_cases(self, cases: Iterable[Case], markers: Mapping[str, float | None]) -> dict[str, float]:
        """Return the margin of each case by its id; `markers` has those on the tests."""
        return {case.case_id: self.margin_ratio(case.kind, markers.get(case.case_id)) for case in cases}

    def mentions(self, kind: str) -> bool:
        """Whether a source mentions this very kind."""
        return any(kind in each.by_kind_ratio for each in (self.command_line, self.ini, self.profile))

    def unused_kinds(self, known: Collection[str]) -> tuple[str, ...]:
        """Return the kinds of which the command line speaks and that no case has, such as a misspelt one."""
        return tuple(kind for kind in self.command_line.by_kind_ratio if kind not in known)


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputRequest:
    """What was asked for."""

    writes_report: bool = True
    #: To which the run is appended; None where it is not.
    history: HistoryPlace | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunConfig:
    """Everything that a run was asked for, resolved and checked."""

    profile: Profile
    #: What is measured; plans are made for it, and are run by it.
    board: Board
    workload: LlamaWorkload
    #: None leaves it to the board.
    asked_threads: int | None
    backend: str
    baseline_mode: str
    baseline_dir: Path
    #: Where a checkout keeps a reference of its own, which is never committed.
    local_baseline_dir: Path
    run_dir: Path
    cache_dir: Path
    n_replicates: int
    margins: Margins
    session_spread_ratio: float
    #: The coarsest resolution that a PASS may have.
    most_resolution_ratio: float
    #: Share of its step that a case may change by; 0 leaves it to the margin alone.
    step_share_ratio: float
    strict: bool
    opencl_platform: str | None
    #: Slowdowns on purpose: of an operator, or of a phase.
    inject_op: str | None
    inject_phases: tuple[str, ...]
    inject_ratio: float
    #: Time for the pairs of a paired comparison, s.
    budget_s: float
    #: The model as it was asked for, and the sweeps around it.
    model: str
    sweeps: tuple[str, ...]
    long_sweeps: bool
    #: Whether a quick calibration forecasts, and is made, where no whole one is stored.
    quick_calibration: bool = False
    #: Whether what the run asks of the board is only written down.
    is_planned: bool = False
    #: Why operators cannot be enumerated before they were recorded, where that is so.
    graph_notes: tuple[str, ...] = ()
    #: Another llama.cpp than the board's own.
    other_engine: Engine | None = None
    #: Whether the suite's own timings are held against ground truths.
    fidelity: bool = False
    #: Whether what following a run costs is measured.
    overhead: bool = False
    #: Whether a run is traced, and judged by what the trace shows.
    trace: bool = False
    #: The llama.cpp whose work is counted: a checkout or a release, "" the one that the suite requires; None counts
    #: nothing.
    counts: str | None = None
    #: The same of the side that it is compared with; None compares with the committed counts.
    counts_old: str | None = None
    #: What hunts for shapes were asked for; None without any.
    shapes: HuntRequest | None = None
    #: Experiments of other wheels, by the names of their entry points.
    experiments: tuple[str, ...] = ()
    #: The engine's OpenCL backend on its device; None with another backend.
    opencl: OpenClBackend | None = None
    #: Lengths of the prompts that each process runs; () runs the scenario's.
    prompt_lengths: tuple[int, ...] = ()
    #: How long quiet is waited for on a machine that is busy, s; 0 measures all the same.
    wait_quiet_s: float = 0.0
    #: Whether a run that judged nothing ends with 0.
    allows_undecided: bool = False
    #: Whether sides that compute different outputs are judged by their times.
    allows_other_output: bool = False
    #: What a run ends with in which something looks slower, not proven.
    suspect_exit: int = SUSPECT_EXIT
    #: What pairs compare with; None compares with stored baselines.
    old: RunConfig | None = None
    #: The same as it was asked for.
    old_text: str = ""
    #: The session of the baseline whose engine the pairs measure again; None of an old side that an option names.
    old_session: StoredSession | None = None
    #: How the machine that made it differed from this one.
    old_differences: tuple[str, ...] = ()
    #: Where the run comes from, and what it writes.
    origin: RunOrigin = NO_ORIGIN
    #: What is left out, such as ``kernels``, and which extra would bring it.
    left_out: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    outputs: OutputRequest = field(default_factory=OutputRequest)
    #: When it began, by `time.monotonic`.
    began_s: float = field(default_factory=time.monotonic)

    @property
    def is_timed(self) -> bool:
        """Whether times are measured; on some devices work is counted alone."""
        return self.profile.counts_for is None

    @property
    def is_against(self) -> bool:
        """Whether an option names an old side, so that stored baselines do not count."""
        return self.old is not None and self.old_session is None

    @property
    def compares_outputs(self) -> bool:
        """Whether the old side is to compute the same: one model with caches of one type, on any build."""
        if self.old is None:
            return False
        new, old = (
            replace(each, settings=replace(each.settings, flash_attn=True), n_ubatch=1)
            for each in (self.workload, self.old.workload)
        )
        return new == old

    @property
    def engine(self) -> Engine:
        """The llama.cpp that is measured."""
        return self.other_engine or self.board.facts().engine

    @property
    def platform(self) -> str | None:
        """Part of the name of the OpenCL platform; None takes the first that has a device."""
        return self.opencl_platform or self.profile.opencl_platform

    def backend_of(self, engine: Engine) -> OpenClBackend:
        """Return the OpenCL backend that the board has for an engine.

        Raises PerfsuiteError: there is no such platform, no backend for the engine, or no layer to follow it.
        """
        return self.board.instruments.opencl_backend(engine, self.platform)

    @property
    def n_threads(self) -> int:
        """Threads of the engine."""
        return self.asked_threads or self.board.facts().default_threads

    @property
    def log_dir(self) -> Path:
        """Where workers keep logs: beside the run's files, or in the board's own cache."""
        return build_logs(self.board, self.run_dir)

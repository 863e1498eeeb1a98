"""What else is known of a run: the ceilings it was compared with, how long it took, where it comes from."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from perfsuite.records.ceilings import Ceilings
from perfsuite.records.run_file import RunFile
from perfsuite.report.engine_words import commit_title
from perfsuite.report.page.page_run import PageRun, run_labels
from perfsuite.report.page.words import capitalized
from perfsuite.report.reproduce import command_again
from perfsuite.units import format_bytes, format_bytes_per_s, format_flops_per_s, format_ns


@dataclass(frozen=True, slots=True, kw_only=True)
class FactRow:
    """What is known of one thing."""

    name: str
    cells: tuple[str, ...]
    #: Whether the runs of the page do not agree on it.
    differs: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class FactTable:
    """Facts of one sort."""

    title: str
    #: What they are, in a sentence; empty where the title says it.
    note: str
    #: Over the names, then over each cell.
    headings: tuple[str, ...]
    rows: tuple[FactRow, ...]
    #: Whether the cells are figures, which stand under each other by their ends.
    is_numeric: bool = True


def fact_row(name: str, *cells: str) -> FactRow:
    """Return a row on which nothing can differ."""
    return FactRow(name=name, cells=cells)


def filled(tables: Iterable[FactTable]) -> tuple[FactTable, ...]:
    """Return the tables that have a row."""
    return tuple(table for table in tables if table.rows)


def compared_row(name: str, values: Sequence[str | None]) -> FactRow:
    """Return a row of one value a run; it differs where the runs that have it do not agree."""
    known = {value for value in values if value is not None}
    return FactRow(name=name, cells=tuple(value or "-" for value in values), differs=len(known) > 1)


def fact_tables(page_run: PageRun) -> tuple[FactTable, ...]:
    """Return the tables that have something to tell."""
    run = page_run.run
    return filled((_bandwidths(run.ceilings), _rates(run.ceilings), _shares(run), _durations(run), _origin(page_run)))


def _bandwidths(ceilings: Ceilings | None) -> FactTable:
    return FactTable(
        title="Ceilings of the memory",
        note="The best that was measured on this device, by working set.",
        headings=("working set", "read", "copy", "triad"),
        rows=tuple(
            fact_row(
                format_bytes(level.working_set_bytes),
                format_bytes_per_s(level.read_bytes_per_s),
                _rate(format_bytes_per_s, level.copy_bytes_per_s),
                _rate(format_bytes_per_s, level.triad_bytes_per_s),
            )
            for level in (ceilings.bandwidths if ceilings else ())
        ),
    )


def _rate(form: Callable[[float], str], per_s: float | None) -> str:
    return "not measured" if per_s is None else form(per_s)


def _rates(ceilings: Ceilings | None) -> FactTable:
    return FactTable(
        title="Ceilings of the arithmetic",
        note=f"With {ceilings.n_threads} threads together." if ceilings else "",
        headings=("", "at best"),
        rows=_rate_rows(ceilings) if ceilings else (),
    )


def _rate_rows(ceilings: Ceilings) -> tuple[FactRow, ...]:
    f16 = ceilings.f16_flops_per_s
    return (
        fact_row("32-bit floats", format_flops_per_s(ceilings.fp32_flops_per_s)),
        fact_row("16-bit floats", "no such instruction" if f16 is None else format_flops_per_s(f16)),
        fact_row("8-bit integers", _rate(format_flops_per_s, ceilings.int8_flops_per_s)),
        fact_row("one dispatch", format_ns(ceilings.dispatch_ns)),
    )


def _shares(run: RunFile) -> FactTable:
    return FactTable(
        title="What operators account for",
        note="The remainder of a phase is its case rest.",
        headings=("phase", "share"),
        rows=tuple(fact_row(phase, f"{ratio * 100:.1f} %") for phase, ratio in run.operator_share_ratio.items()),
    )


def _durations(run: RunFile) -> FactTable:
    total_s = sum(run.durations_s.values())
    parts = tuple(fact_row(name, f"{spent_s:.1f} s") for name, spent_s in run.durations_s.items())
    memory = () if run.peak_rss_bytes is None else (fact_row("largest worker", format_bytes(run.peak_rss_bytes)),)
    return FactTable(
        title="Cost of the run",
        note="Time by part, and memory.",
        headings=("", ""),
        rows=(*parts, *((fact_row("together", f"{total_s:.1f} s"),) if len(parts) > 1 else ()), *memory),
    )


def _origin(page_run: PageRun) -> FactTable:
    run, origin = page_run.run, page_run.run.origin
    commit = origin.commit
    told = {
        "file": str(page_run.path),
        "run": origin.run_id,
        commit_title(origin).lower(): commit.sha if commit else "",
        "branch": (commit.branch or "") if commit else "",
        "uncommitted changes": ("yes" if commit.is_dirty else "no") if commit else "",
        "began": run.started_at,
        "perfsuite": run.suite_version,
        "command": command_again(origin) if origin.arguments else "not kept by the version that made the run",
    }
    return FactTable(
        title="Origin",
        note="",
        headings=("", ""),
        rows=tuple(fact_row(name, value) for name, value in told.items() if value),
        is_numeric=False,
    )


#: By covariate: its name, by how much it is multiplied, and how the figure is written then.
_COVARIATES = {
    "load_average": ("Load average before", 1, "{:.2f}"),
    "cpu_mhz": ("Clock before", 1, "{:.0f} MHz"),
    "temperature_celsius": ("Temperature before", 1, "{:.1f} °C"),
    "waiting_ratio": ("Time spent waiting for a processor", 100, "{:.2f} %"),
    "steal_ratio": ("Time that the hypervisor took", 100, "{:.2f} %"),
    "battery_ratio": ("Battery before", 100, "{:.0f} %"),
    "power_watts": ("Power before", 1, "{:.2f} W"),
    "throttled": ("Throttled before", 1, ""),
}


def machine_tables(runs: Sequence[PageRun]) -> tuple[FactTable, ...]:
    """Return the state of the machine in the reported run, and the fingerprints of all runs."""
    run = runs[0].run
    return filled(
        (_covariates(run), _energy(run), _sentinels(run), _discarded(run), *_fingerprints([each.run for each in runs]))
    )


def _covariates(run: RunFile) -> FactTable:
    groups = [group for group, fields in run.covariates.items() if fields]
    names = dict.fromkeys(name for group in groups for name in run.covariates[group])
    return FactTable(
        title="State of the machine",
        note="These explain a run and never make it incomparable.",
        headings=("", *groups),
        rows=tuple(
            fact_row(_COVARIATES.get(name, (name,))[0], *(_covariate(name, run.covariates[group]) for group in groups))
            for name in names
        ),
    )


def _covariate(name: str, fields: Mapping[str, float | None]) -> str:
    value = fields.get(name)
    if value is None:
        return "-"
    if name == "throttled":
        return "yes" if value else "no"
    _, factor, written = _COVARIATES.get(name, (name, 1, "{:g}"))
    return written.format(value * factor)


def _energy(run: RunFile) -> FactTable:
    return FactTable(
        title="Energy of a token",
        note="By the device's power sensor, over all replicates; a phase that is too short for the sensor has none.",
        headings=("phase", "energy"),
        rows=tuple(
            fact_row(phase, "-" if joules is None else f"{joules:.3g} J")
            for phase, joules in run.joules_per_token.items()
        ),
    )


def _sentinels(run: RunFile) -> FactTable:
    return FactTable(
        title="Sentinels",
        note="A fixed piece of work beside the cases: where its time drifts, the machine does.",
        headings=("", "median", "least", "most", "most over least", "replicates"),
        rows=tuple(
            fact_row(f"{group}: {name}", *_spread(times))
            for group, sentinels in run.sentinels_ns.items()
            for name, times in sentinels.items()
            if times
        ),
    )


def _spread(times_ns: Sequence[int]) -> Iterator[str]:
    least, most = min(times_ns), max(times_ns)
    yield from (format_ns(median(times_ns)), format_ns(least), format_ns(most))
    yield f"{most / least:.3f}" if least else "-"
    yield str(len(times_ns))


def _discarded(run: RunFile) -> FactTable:
    return FactTable(
        title="Replicates left out",
        note="Something else used the processors while they ran.",
        headings=("", "left out"),
        rows=tuple(fact_row(group, str(count)) for group, count in run.n_discarded_replicates.items()),
    )


def _fingerprints(runs: Sequence[RunFile]) -> Iterator[FactTable]:
    labels = [capitalized(label) for label in run_labels(len(runs))]
    for group in dict.fromkeys(group for run in runs for group in run.fingerprints):
        fields = [run.fingerprints.get(group, {}) for run in runs]
        yield FactTable(
            title=f"Fingerprint: {group}",
            note="What must be equal for two runs to be comparable.",
            headings=("", *labels),
            rows=tuple(
                compared_row(name, [each.get(name) for each in fields])
                for name in sorted({name for each in fields for name in each})
            ),
            is_numeric=False,
        )

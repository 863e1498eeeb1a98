"""What else is known of a run: the ceilings it was compared with, how long it took, where it comes from."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from perfsuite.report.page.page_run import PageRun, run_labels
from perfsuite.report.reproduce import command_again
from perfsuite.report.words import capitalized, commit_title
from perfsuite.units import format_bytes, format_bytes_per_s, format_flops_per_s, format_ns


@dataclass(frozen=True, slots=True)
class FactTable:
    """Facts of one sort: each row has a name and cells."""

    title: str
    #: What they are, in a sentence; empty where the title says it.
    note: str
    #: Over the names, then over each cell.
    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    #: Whether the cells are figures, which stand under each other by their ends.
    is_numeric: bool = True
    #: Whether each cell is of another run, so that rows in which they are not alike are marked.
    is_compared: bool = False

    def differs(self, row: tuple[str, ...]) -> bool:
        """Whether the runs that have it do not agree."""
        return self.is_compared and len({*row[1:]} - {"-"}) > 1


def _filled(tables: Iterable[FactTable]) -> tuple[FactTable, ...]:
    return tuple(table for table in tables if table.rows)


def fact_tables(page_run: PageRun) -> tuple[FactTable, ...]:
    """Return the tables that have something to tell."""
    return _filled(_facts(page_run))


def _facts(page_run: PageRun) -> Iterator[FactTable]:
    run = page_run.run
    if ceilings := run.ceilings:
        note = "The best that was measured on this device, by working set."
        levels = tuple(
            (
                format_bytes(level.working_set_bytes),
                format_bytes_per_s(level.read_bytes_per_s),
                _rate(format_bytes_per_s, level.copy_bytes_per_s),
                _rate(format_bytes_per_s, level.triad_bytes_per_s),
            )
            for level in ceilings.bandwidths
        )
        yield FactTable("Ceilings of the memory", note, ("working set", "read", "copy", "triad"), levels)
        f16 = ceilings.f16_flops_per_s
        rates = (
            ("32-bit floats", format_flops_per_s(ceilings.fp32_flops_per_s)),
            ("16-bit floats", "no such instruction" if f16 is None else format_flops_per_s(f16)),
            ("8-bit integers", _rate(format_flops_per_s, ceilings.int8_flops_per_s)),
            ("one dispatch", format_ns(ceilings.dispatch_ns)),
        )
        note = f"With {ceilings.n_threads} threads together."
        yield FactTable("Ceilings of the arithmetic", note, ("", "at best"), rates)
    shares = tuple((phase, f"{ratio * 100:.1f} %") for phase, ratio in run.operator_share_ratio.items())
    note = "The remainder of a phase is its case rest."
    yield FactTable("What operators account for", note, ("phase", "share"), shares)
    costs = [(name, f"{spent_s:.1f} s") for name, spent_s in run.durations_s.items()]
    if len(costs) > 1:
        costs.append(("together", f"{sum(run.durations_s.values()):.1f} s"))
    if run.peak_rss_bytes is not None:
        costs.append(("largest worker", format_bytes(run.peak_rss_bytes)))
    yield FactTable("Cost of the run", "Time by part, and memory.", ("", ""), tuple(costs))
    yield FactTable("Origin", "", ("", ""), tuple(_origin(page_run)), is_numeric=False)


def _rate(form: Callable[[float], str], per_s: float | None) -> str:
    return "not measured" if per_s is None else form(per_s)


def _origin(page_run: PageRun) -> Iterator[tuple[str, str]]:
    run, origin, commit = page_run.run, page_run.run.origin, page_run.run.origin.commit
    facts = {
        "file": str(page_run.path),
        "run": origin.run_id,
        commit_title(origin).lower(): commit.sha if commit else "",
        "branch": (commit.branch or "") if commit else "",
        "uncommitted changes": ("yes" if commit.is_dirty else "no") if commit else "",
        "began": run.started_at,
        "perfsuite": run.suite_version,
        "command": command_again(origin) if origin.arguments else "not kept by the version that made the run",
    }
    return ((name, value) for name, value in facts.items() if value)


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
    return _filled(_machine(runs))


def _machine(runs: Sequence[PageRun]) -> Iterator[FactTable]:
    run = runs[0].run
    groups = [group for group, fields in run.covariates.items() if fields]
    names = dict.fromkeys(name for group in groups for name in run.covariates[group])
    states = tuple(
        (_COVARIATES.get(name, (name,))[0], *(_covariate(name, run.covariates[group]) for group in groups))
        for name in names
    )
    note = "These explain a run and never make it incomparable."
    yield FactTable("State of the machine", note, ("", *groups), states)
    energies = run.joules_per_token.items()
    note = "By the device's power sensor, over all replicates; a phase that is too short for the sensor has none."
    rows = tuple((phase, "-" if joules is None else f"{joules:.3g} J") for phase, joules in energies)
    yield FactTable("Energy of a token", note, ("phase", "energy"), rows)
    sentinels = tuple(
        (f"{group}: {name}", *_spread(times))
        for group, times_ns in run.sentinels_ns.items()
        for name, times in times_ns.items()
        if times
    )
    note = "A fixed piece of work beside the cases: where its time drifts, the machine does."
    figures = ("", "median", "least", "most", "most over least", "replicates")
    yield FactTable("Sentinels", note, figures, sentinels)
    left_out = tuple((group, str(count)) for group, count in run.n_discarded_replicates.items())
    note = "Something else used the processors while they ran."
    yield FactTable("Replicates left out", note, ("", "left out"), left_out)
    labels = map(capitalized, run_labels(len(runs)))
    headings, note = ("", *labels), "What must be equal for two runs to be comparable."
    for group in dict.fromkeys(group for each in runs for group in each.run.fingerprints):
        prints = [each.run.fingerprints.get(group, {}) for each in runs]
        fields = sorted({name for each in prints for name in each})
        values = tuple((name, *(each.get(name) or "-" for each in prints)) for name in fields)
        yield FactTable(f"Fingerprint: {group}", note, headings, values, is_numeric=False, is_compared=True)


def _covariate(name: str, fields: Mapping[str, float | None]) -> str:
    value = fields.get(name)
    if value is None:
        return "-"
    if name == "throttled":
        return "yes" if value else "no"
    _, factor, form = _COVARIATES.get(name, (name, 1, "{:g}"))
    return form.format(value * factor)


def _spread(times_ns: Sequence[int]) -> Iterator[str]:
    least, most = min(times_ns), max(times_ns)
    yield from map(format_ns, (median(times_ns), least, most))
    yield f"{most / least:.3f}" if least else "-"
    yield str(len(times_ns))

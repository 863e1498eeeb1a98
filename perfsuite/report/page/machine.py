"""The machine during the run: its state, the references that were measured beside the cases, what it is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from statistics import median

from perfsuite.report.page.fact_table import FactTable, compared_row, fact_row, filled
from perfsuite.report.page.other_runs import run_labels
from perfsuite.report.page.page_run import PageRun
from perfsuite.report.page.words import capitalized
from perfsuite.report.run_file import RunFile
from perfsuite.units import format_ns

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
        is_numeric=True,
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
        is_numeric=True,
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
        is_numeric=True,
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
        is_numeric=True,
    )


def _fingerprints(runs: Sequence[RunFile]) -> Iterator[FactTable]:
    """Return a table for each group, with a column for each run."""
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
        )

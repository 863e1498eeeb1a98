"""What else is known of a run: the ceilings it was held against, how long it took, where it comes from."""

from __future__ import annotations

from perfsuite.expectation.ceilings import Ceilings
from perfsuite.report.engine_words import commit_title
from perfsuite.report.page.fact_table import FactRow, FactTable, fact_row, filled
from perfsuite.report.page.page_run import PageRun
from perfsuite.report.run_file import RunFile
from perfsuite.report.same_again import command_again
from perfsuite.units import format_bytes, format_bytes_per_s, format_flops_per_s, format_ns


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
                format_bytes_per_s(level.copy_bytes_per_s),
                format_bytes_per_s(level.triad_bytes_per_s),
            )
            for level in (ceilings.bandwidths if ceilings else ())
        ),
        is_numeric=True,
    )


def _rates(ceilings: Ceilings | None) -> FactTable:
    return FactTable(
        title="Ceilings of the arithmetic",
        note=f"With {ceilings.n_threads} threads together." if ceilings else "",
        headings=("", "at best"),
        rows=_rate_rows(ceilings) if ceilings else (),
        is_numeric=True,
    )


def _rate_rows(ceilings: Ceilings) -> tuple[FactRow, ...]:
    f16 = ceilings.f16_flops_per_s
    return (
        fact_row("32-bit floats", format_flops_per_s(ceilings.fp32_flops_per_s)),
        fact_row("16-bit floats", "no such instruction" if f16 is None else format_flops_per_s(f16)),
        fact_row("8-bit integers", format_flops_per_s(ceilings.int8_flops_per_s)),
        fact_row("one dispatch", format_ns(ceilings.dispatch_ns)),
    )


def _shares(run: RunFile) -> FactTable:
    return FactTable(
        title="What operators account for",
        note="The remainder of a phase is its case rest.",
        headings=("phase", "share"),
        rows=tuple(fact_row(phase, f"{ratio * 100:.1f} %") for phase, ratio in run.operator_share_ratio.items()),
        is_numeric=True,
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
        is_numeric=True,
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
    )

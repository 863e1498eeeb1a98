"""What else is known of a run."""

from __future__ import annotations

from dataclasses import replace

from perfsuite.records.run_origin import NO_ORIGIN
from perfsuite.report.page.facts import fact_tables
from perfsuite.report.run_file import RunFile
from perfsuite.testing.run_files import synthetic_run

from .conftest import page_run

RUN = synthetic_run(n_cases=20)


def told(run: RunFile) -> dict[str, dict[str, tuple[str, ...]]]:
    """The rows by table and name."""
    tables = fact_tables(page_run(run))
    return {table.title: {row.name: row.cells for row in table.rows} for table in tables}


def test_ceilings_are_told_in_their_units() -> None:
    """Bandwidths by working set and rates of arithmetic, with what the processor cannot do at all."""
    found = told(RUN)
    assert found["Ceilings of the memory"]["1.00 MiB"] == ("510 GB/s", "495 GB/s", "520 GB/s")
    assert found["Ceilings of the arithmetic"]["16-bit floats"] == ("no such instruction",)


def test_a_run_without_ceilings_has_no_table_of_them() -> None:
    """A comparison in pairs has no ceilings, and the page does not pretend."""
    assert not any("Ceilings" in title for title in told(replace(RUN, ceilings=None)))


def test_the_cost_of_the_run_is_summed() -> None:
    """Parts have their times, then all together, and the memory of the largest worker."""
    cost = told(replace(RUN, durations_s={"a": 1.25, "b": 2.5}))["Cost of the run"]
    assert list(cost) == ["a", "b", "together", "largest worker"]
    assert cost["together"] == ("3.8 s",)


def test_the_origin_is_told() -> None:
    """File, run, commit and command; what is not known is left out, and the command's absence said."""
    commit = RUN.origin.commit
    assert commit is not None
    origin = told(RUN)["Origin"]
    assert (origin["run from commit"], origin["file"]) == ((commit.sha,), ("night/run.json",))
    assert "pytest --device=host" in origin["command"][0]
    bare = told(replace(RUN, origin=NO_ORIGIN))["Origin"]
    assert "run from commit" not in bare
    assert bare["command"] == ("not kept by the version that made the run",)

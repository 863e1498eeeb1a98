"""What else is known of a run."""

from __future__ import annotations

from dataclasses import replace

from perfsuite.records.run_origin import NO_ORIGIN
from perfsuite.report.page.facts import FactTable, compared_row, fact_row, fact_tables, filled, machine_tables
from perfsuite.report.run_file import RunFile
from perfsuite.testing.run_files import synthetic_run

from .conftest import page_run

LOADED_RUN = replace(
    synthetic_run(n_cases=20),
    covariates={"llama": {"odd": 1.5}},
    sentinels_ns={"llama": {"memory": (100, 110, 120), "compute": ()}},
)


def tables(*runs: RunFile) -> dict[str, FactTable]:
    found = machine_tables(list(map(page_run, runs)))
    return {table.title: table for table in found}


def test_the_state_of_the_machine_has_its_units() -> None:
    """What was not measured is a dash, what is not known keeps its name."""
    rows = {row.name: row.cells for row in tables(LOADED_RUN)["State of the machine"].rows}
    assert rows["odd"] == ("1.5",)
    fields = {"battery_ratio": 0.8, "power_watts": 6.5, "throttled": 1.0}
    run = replace(
        LOADED_RUN, covariates={"llama": fields, "kernels": {**fields, "throttled": 0.0, "power_watts": None}}
    )
    rows = {row.name: row.cells for row in tables(run)["State of the machine"].rows}
    assert rows["Battery before"] == ("80 %", "80 %")
    assert rows["Power before"] == ("6.50 W", "-")
    assert rows["Throttled before"] == ("yes", "no")
    assert "Energy of a token" not in tables(LOADED_RUN)


def test_fingerprints_of_runs_are_compared() -> None:
    """Each group has a table with a column for each run, fields that differ are marked, a missing value is a dash."""
    changed = replace(LOADED_RUN, fingerprints={"llama": {**LOADED_RUN.fingerprints["llama"], "threads": "4"}})
    table = tables(LOADED_RUN, changed)["Fingerprint: llama"]
    assert table.headings == ("", "This run", "Run 2")
    assert [(row.name, row.cells) for row in table.rows if row.differs] == [("threads", ("2", "4"))]
    assert compared_row("threads", ["2", "4"]).differs
    assert not compared_row("threads", ["2", "2"]).differs
    missing = compared_row("threads", ["2", None])
    assert (missing.differs, missing.cells) == (False, ("2", "-"))


def test_what_a_run_does_not_tell_has_no_table() -> None:
    """Neither a state nor ceilings are made up, and only tables that tell something are kept."""
    bare = replace(
        LOADED_RUN, covariates={"llama": {}}, sentinels_ns={"llama": {}}, n_discarded_replicates={}, fingerprints={}
    )
    assert tables(bare) == {}
    empty = FactTable(title="a", note="", headings=("",), rows=())
    full = FactTable(title="b", note="", headings=("",), rows=(fact_row("x", "1"),))
    assert filled([empty, full]) == (full,)
    assert not any("Ceilings" in title for title in told(replace(RUN, ceilings=None)))
    bare = told(replace(RUN, origin=NO_ORIGIN))["Origin"]
    assert "run from commit" not in bare
    assert bare["command"] == ("not kept by the version that made the run",)


RUN = synthetic_run(n_cases=20)


def told(run: RunFile) -> dict[str, dict[str, tuple[str, ...]]]:
    tables = fact_tables(page_run(run))
    return {table.title: {row.name: row.cells for row in table.rows} for table in tables}

"""What else is known of a run."""

from __future__ import annotations

from dataclasses import replace

from perfsuite.records.run_file import RunFile
from perfsuite.report.page.facts import FactTable, machine_tables
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


def test_fingerprints_of_runs_are_compared() -> None:
    """Each group has a table with a column for each run, fields that differ are marked, a missing value is a dash."""
    changed = replace(LOADED_RUN, fingerprints={"llama": {**LOADED_RUN.fingerprints["llama"], "threads": "4"}})
    table = tables(LOADED_RUN, changed)["Fingerprint: llama"]
    assert table.headings == ("", "This run", "Run 2")
    assert [row for row in table.rows if table.differs(row)] == [("threads", "2", "4")]
    lacking = {name: value for name, value in LOADED_RUN.fingerprints["llama"].items() if name != "threads"}
    table = tables(LOADED_RUN, replace(LOADED_RUN, fingerprints={"llama": lacking}))["Fingerprint: llama"]
    assert ("threads", "2", "-") in table.rows
    assert not any(map(table.differs, table.rows))

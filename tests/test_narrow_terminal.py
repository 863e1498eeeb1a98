"""The tables of the commands on a terminal of 80 columns.

What commands measure is replaced in the tests of each; `tests.conftest.narrow_tables` holds their tables there.
"""

from __future__ import annotations

import io
import re
import shutil
from contextlib import redirect_stdout
from pathlib import Path

import pytest
from rich.cells import cell_len
from rich.table import Table

from perfsuite.cli import answer, main
from perfsuite.experiments.roofline.stored_run import write_roofline
from perfsuite.records.trace_file import write_trace
from perfsuite.report.history import append_run
from perfsuite.report.run_file import write_run
from perfsuite.testing.engine_traces import engine_trace, small_trace
from perfsuite.testing.run_files import synthetic_run
from perfsuite.trace.recording import TRACE_NAME
from tests.backend_ops_text import ops_sql
from tests.narrow_tables import WIDTH
from tests.synthetic_roofline import memory_record, roofline_run
from tests.synthetic_statistics import expert_product, experts_of, step_events

_ROOT = Path(__file__).resolve().parents[1]
_DECODE = "phase/smollm2-135m-q8_0/siso/decode"
_HISTORY = "--history=history"

#: Lines by the command that they are of; what they read is in the folder that `stored` makes.
_LINES = (
    "architectures",
    "architectures --tiny",
    "baseline diff later",
    "baseline show host smollm2-135m-q8_0",
    "compare old.sql new.sql",
    "devices list",
    "devices show rubikpi",
    "engines list",
    "experts experts",
    "fidelity --published",
    "forecast --architecture=smollm2-135m --prompt=64 --new-tokens=32 --quantization=q8_0 --tops=2 --bandwidth=60",
    f"history cases {_HISTORY}",
    f"history runs {_HISTORY}",
    f"history sql {_HISTORY} SELECT_*_FROM_history_LIMIT_3",
    f"history trend siso/decode {_HISTORY}",
    "llama-bench show llama-bench.json",
    "nightly plan.toml --dry-run",
    "plot --list",
    "prompts lengths.txt --keep=50%",
    "reproduce life",
    "roofline --from=roofline.json",
    "roofline --published",
    "study study/plan.toml --dry-run",
    "trace view graph trace trace",
    "trace view statistics trace",
    "trace view timeline trace",
)

_PLAN = """
schema = 1
models = ["smollm2-135m-q8_0", "llama-3.2-1b-q4_0"]
scenarios = ["siso", "lilo-long"]
[[board]]
device = "host"
"""


class _Terminal(io.StringIO):
    """Takes colours and has a width."""

    def isatty(self) -> bool:
        """Say that it is one."""
        return True


@pytest.fixture
def stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was measured before: runs, a history, baselines, recordings, a roofline, files of llama.cpp's own tools."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("platformdirs.user_cache_dir", lambda name: str(tmp_path / "cache"))
    for seed, name in enumerate(("earlier", "later")):
        write_run(synthetic_run(n_cases=24, seed=seed, against=None), tmp_path / name)
    for seed in range(4):
        at = f"2026-03-0{seed + 1}T02:00:00+00:00"
        append_run(synthetic_run(n_cases=12, seed=seed, against=None, started_at=at), tmp_path / "history")
    for name in ("trace", "experts"):
        (tmp_path / name).mkdir()
    write_trace(tmp_path / "trace" / TRACE_NAME, small_trace(3))
    chosen = [(step, 0, [[step % 8, (3 * step + 1) % 8]]) for step in range(40)]
    events = [each for step in range(40) for each in step_events(step, lambda *_: 1_000, 1)]
    experts = engine_trace(events, graphs=((expert_product(0),),), experts=experts_of(chosen), n_experts=8)
    write_trace(tmp_path / "experts" / TRACE_NAME, experts)
    write_roofline(roofline_run(memory=(memory_record(),)), tmp_path / "roofline.json")
    for name, times in (("old", (100.0, 101.0)), ("new", (110.0, 111.0))):
        rows = ((f"2026-03-0{at + 1}T0{name == 'new'}:00:00Z", time_us) for at, time_us in enumerate(times))
        (tmp_path / f"{name}.sql").write_text(ops_sql(*rows))
    shutil.copy(_ROOT / "tests" / "data" / "llama-bench.json", tmp_path)
    shutil.copytree(_ROOT / "docs" / "examples" / "study", tmp_path / "study")
    (tmp_path / "lengths.txt").write_text("".join(f"{length}\n" for length in range(1, 200)))
    (tmp_path / "plan.toml").write_text(_PLAN)


@pytest.fixture
def tables(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What each table that is printed has on a terminal of 80 columns."""
    monkeypatch.setenv("COLUMNS", str(WIDTH))
    found: list[str] = []
    prints = answer._print_table

    def keeping(table: Table) -> None:
        with redirect_stdout(_Terminal()) as out:
            prints(table)
        found.append(re.sub(r"\x1b\[[0-9;]*m", "", out.getvalue()))

    monkeypatch.setattr(answer, "_print_table", keeping)
    return found


@pytest.mark.usefixtures("stored")
@pytest.mark.parametrize("line", _LINES, ids=lambda line: " ".join(line.split()[:3]))
def test_80_columns_hold_every_table(line: str, tables: list[str]) -> None:
    """No line is wider; `narrow_tables`, which runs as well, sees that no letter is lost."""
    if line.startswith("baseline"):
        assert main(["baseline", "record", "earlier"]) == 0
    assert main([word.replace("_", " ") if word.startswith("SELECT") else word for word in line.split()]) in {0, 1, 10}
    assert tables
    assert [each for table in tables for each in table.splitlines() if cell_len(each) > WIDTH] == []

"""What each command that shows something shows: on a terminal of 80 columns, and to programs."""

from __future__ import annotations

import io
import json
import re
import shutil
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import pytest
from rich.cells import cell_len
from rich.table import Table

from perfsuite import __version__
from perfsuite.cli import answer, main
from perfsuite.expectation.roofline.roofline_run import write_roofline
from perfsuite.records.trace_file import write_trace
from perfsuite.report.history import append_run
from perfsuite.report.run_writer import write_run
from perfsuite.testing.engine_traces import engine_trace, small_trace
from perfsuite.testing.run_files import synthetic_run
from perfsuite.trace.recording import TRACE_NAME
from tests.backend_ops_text import ops_sql
from tests.command_streams import Streams
from tests.conftest import Golden
from tests.synthetic_roofline import memory_record, roofline_run
from tests.synthetic_statistics import expert_product, experts_of, step_events

_ROOT = Path(__file__).resolve().parents[2]

#: What the narrowest terminal has that people work with.
WIDTH = 80

#: Lines by the command that they are of; what they read is in the folder that `stored` makes.
_SHOWN = (
    "baseline diff later",
    "baseline show host smollm2-135m-q8_0",
    "compare old.sql new.sql",
    "experts experts",
    "forecast --architecture=smollm2-135m --prompt=64 --new-tokens=32 --quantization=q8_0 "
    "--tops=2 --bandwidth=60 --power-w=20",
    "history cases",
    "history runs",
    "history sql SELECT device, case_id, measured_ns FROM history ORDER BY started_at, case_id LIMIT 3",
    "history trend siso/decode",
    "llama-bench show llama-bench.json",
    "nightly plan.toml --dry-run",
    "prompts lengths.txt --keep=50%",
    "roofline --from=roofline.json",
    "study study/plan.toml --dry-run",
    "trace view graph trace trace",
    "trace view statistics trace",
    "trace view timeline trace",
)

#: Those that list what ships: their data is tested where it is, and only that it fits is here.
_LISTING = (
    "architectures",
    "architectures --tiny",
    "devices list",
    "devices show rubikpi",
    "engines list",
    "fidelity --published",
    "plot --list",
    "reproduce life",
    "roofline --published",
)

#: What is done, or shown, for programs.
_DONE = (
    "baseline anchor host smollm2-135m-q8_0 --reason=rows-are-padded-now",
    "baseline approve later --reason=rows-are-padded-now",
    "baseline diff later",
    "baseline prune host smollm2-135m-q8_0 --keep=1",
    "compare old.sql new.sql",
    "devices add desk-pi --like=rubikpi --address=me@desk-pi",
    "devices unlock host",
    "engines prune",
    "history add later",
    "history cases siso/decode",
    "history compact",
    "history trend siso/decode --last=1",
    "nightly plan.toml --dry-run",
    "plot life-fig8 -o figure.svg",
    "report later",
    "study study/plan.toml --dry-run",
    "synthesize tiny-llama -o tiny.gguf",
)

#: Those whose keys docs/formats or other pages list, in place of docs/terminal.md.
_ELSEWHERE = {"baseline diff later", "history cases siso/decode", "history trend siso/decode --last=1"}

#: Of those that list, and that depend on the machine, the keys.
_KEYS: dict[str, str | list[str]] = {
    "architectures": ["name gguf_architecture n_parameters n_layers"],
    "plot --list": ["picture shows"],
    "trace check": "problem helper counters",
}

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


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What was measured before: runs, a history, baselines, recordings, a roofline, files of llama.cpp's own tools."""
    folder = tmp_path_factory.mktemp("made")
    for seed, name in enumerate(("earlier", "later")):
        at = f"2026-03-0{seed + 1}T02:00:00+00:00"
        write_run(synthetic_run(n_cases=8, seed=seed, against=None, started_at=at), folder / name)
    for seed in range(4):
        at = f"2026-03-0{seed + 1}T02:00:00+00:00"
        append_run(synthetic_run(n_cases=8, seed=seed, against=None, started_at=at), folder / ".perfsuite" / "history")
    for name in ("trace", "experts"):
        (folder / name).mkdir()
    write_trace(folder / "trace" / TRACE_NAME, small_trace(3))
    chosen = [(step, 0, [[step % 8, (3 * step + 1) % 8]]) for step in range(40)]
    events = [each for step in range(40) for each in step_events(step, lambda *_: 1_000, 1)]
    experts = engine_trace(events, graphs=((expert_product(0),),), experts=experts_of(chosen), n_experts=8)
    write_trace(folder / "experts" / TRACE_NAME, experts)
    write_roofline(roofline_run(memory=(memory_record(),)), folder / "roofline.json")
    for name, times in (("old", (100.0, 101.0)), ("new", (110.0, 111.0))):
        rows = ((f"2026-03-0{at + 1}T0{name == 'new'}:00:00Z", time_us) for at, time_us in enumerate(times))
        (folder / f"{name}.sql").write_text(ops_sql(*rows))
    shutil.copy(_ROOT / "tests" / "data" / "llama-bench.json", folder)
    shutil.copytree(_ROOT / "docs" / "examples" / "study", folder / "study")
    (folder / "lengths.txt").write_text("".join(f"{length}\n" for length in range(1, 200)))
    (folder / "plan.toml").write_text(_PLAN)
    return folder


@pytest.fixture
def stored(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Streams) -> Path:
    """A copy of it, which is the current folder, with a cache of its own; the first run is a baseline."""
    folder = tmp_path / "work"
    shutil.copytree(made, folder)
    monkeypatch.chdir(folder)
    monkeypatch.setattr("platformdirs.user_cache_dir", lambda name: str(tmp_path / "cache"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    assert main(["baseline", "record", "earlier"]) == 0
    capsys.readouterr()
    return folder


def _name(line: str) -> str:
    """The beginning of a file's name that a line has."""
    return re.sub(r"[^a-z0-9]+", "-", line.partition(" --")[0].partition(" SELECT")[0].lower())


def _on_a_terminal(words: list[str], monkeypatch: pytest.MonkeyPatch) -> str:
    """What a terminal of 80 columns shows, whose tables it holds."""
    monkeypatch.setenv("COLUMNS", str(WIDTH))
    tables: list[str] = []
    prints = answer._print_table

    def keeping(table: Table) -> None:
        at = len(out.getvalue())
        prints(table)
        tables.append(_plain(out.getvalue()[at:]))

    monkeypatch.setattr(answer, "_print_table", keeping)
    with redirect_stdout(_Terminal()) as out:
        assert main(words) in {0, 1, 10}
    assert tables
    assert [each for table in tables for each in table.splitlines() if cell_len(each) > WIDTH] == []
    return _plain(out.getvalue())


def _plain(text: str) -> str:
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


@pytest.mark.parametrize("line", [*_SHOWN, *_LISTING])
def test_80_columns_hold_every_table(line: str, stored: Path, golden: Golden, monkeypatch: pytest.MonkeyPatch) -> None:
    """No line is wider."""
    shown = _on_a_terminal(_split(line), monkeypatch)
    if line in _SHOWN:
        lines = (each.rstrip() for each in shown.splitlines())
        golden(f"cli/{_name(line)}.txt", "\n".join(lines).replace(str(stored), "FOLDER") + "\n")


def _split(line: str) -> list[str]:
    """The words of a line, where a query is one."""
    words = line.split()
    return [*words[:2], " ".join(words[2:])] if words[1:2] == ["sql"] else words


@pytest.mark.usefixtures("stored")
@pytest.mark.parametrize("line", [*_DONE, *_KEYS])
def test_the_answer_for_programs_is_what_the_documents_say(
    line: str, stored: Path, golden: Golden, capsys: Streams
) -> None:
    """One document on standard output, a list of such where there are several; docs/terminal.md has its keys."""
    assert main([*line.split(), "--json"]) in {0, 1, 10}
    plain: Any = json.loads(capsys.readouterr().out, parse_float=lambda digits: float(f"{float(digits):.6g}"))
    told = plain[0] if isinstance(plain, list) else plain
    if line in _KEYS:
        keys = _KEYS[line]
        assert list(told) == (keys[0] if isinstance(keys, list) else keys).split()
        assert isinstance(plain, list) == isinstance(keys, list)
    else:
        text = json.dumps(plain, indent=1, ensure_ascii=False).replace(str(stored), "FOLDER")
        text = re.sub(r"\b[0-9a-f]{32}\b", "DIGEST", text.replace(__version__, "VERSION"))
        golden(f"cli/{_name(line)}.json", text + "\n")
    if line not in _ELSEWHERE:
        page = (_ROOT / "docs" / "terminal.md").read_text(encoding="utf-8")
        assert [key for key in told if f"`{key}`" not in page] == []

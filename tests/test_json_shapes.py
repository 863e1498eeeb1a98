"""What ``--json`` prints, by the keys that docs/terminal.md promises."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from perfsuite.cli import main
from perfsuite.report.run_file import write_run
from perfsuite.testing.run_files import synthetic_run
from tests.backend_ops_text import ops_sql
from tests.command_streams import Streams

_ROOT = Path(__file__).resolve().parents[1]
_PLAN = 'schema = 1\nmodels = ["smollm2-135m-q8_0"]\nscenarios = ["siso"]\n[[board]]\ndevice = "host"\n'

_SHAPES = (
    ("architectures", ["name gguf_architecture n_parameters n_layers"]),
    ("baseline approve later --reason=rows-are-padded-now", "recorded_at files left_out"),
    ("baseline anchor host smollm2-135m-q8_0 --reason=rows-are-padded-now", "file reason"),
    ("baseline prune host smollm2-135m-q8_0 --keep=1", "file n_before n_kept"),
    ("compare old.sql new.sql", "margin_ratio tests n_of_one_file_alone"),
    ("devices add desk-pi --like=rubikpi --address=me@desk-pi", "name file reach"),
    ("devices unlock host", "lock notes"),
    ("engines prune", "removed in_use n_kept"),
    ("history add later --history=history", ["run done"]),
    ("history compact --history=history", "file n_files n_runs"),
    ("nightly plan.toml --dry-run", "cell_limit_s night_limit_s wait_s cells"),
    ("plot --list", ["picture shows"]),
    ("plot life-fig8 -o figure.svg", ["picture file title"]),
    ("report later", "file verdict"),
    ("study study/plan.toml --dry-run", "latencies n_workloads n_processes"),
    ("synthesize tiny-llama -o tiny.gguf", "file architecture quantization size_bytes"),
    ("trace check", "problem helper counters"),
)


@pytest.fixture
def stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two runs, the first of them as a baseline, and plans."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("platformdirs.user_cache_dir", lambda name: str(tmp_path / "cache"))
    for seed, name in enumerate(("earlier", "later")):
        at = f"2026-03-0{seed + 1}T02:00:00+00:00"
        write_run(synthetic_run(n_cases=8, seed=seed, against=None, started_at=at), tmp_path / name)
    for name, time_us in (("old", 100.0), ("new", 110.0)):
        (tmp_path / f"{name}.sql").write_text(ops_sql((f"2026-03-01T0{name == 'new'}:00:00Z", time_us)))
    (tmp_path / "history").mkdir()
    (tmp_path / "plan.toml").write_text(_PLAN)
    shutil.copytree(_ROOT / "docs" / "examples" / "study", tmp_path / "study")


@pytest.mark.usefixtures("stored")
@pytest.mark.parametrize(("line", "keys"), _SHAPES, ids=lambda each: str(each).split(" -")[0])
def test_the_answer_for_programs_has_its_keys(line: str, keys: str | list[str], capsys: Streams) -> None:
    """One document on standard output, a list of such where there are several."""
    assert main(["baseline", "record", "earlier"]) == 0
    capsys.readouterr()
    assert main([*line.split(), "--json"]) in {0, 1, 10}
    plain: Any = json.loads(capsys.readouterr().out)
    told = plain[0] if isinstance(keys, list) else plain
    assert list(told) == (keys[0] if isinstance(keys, list) else keys).split()
    page = (_ROOT / "docs" / "terminal.md").read_text(encoding="utf-8")
    assert [key for key in told if f"`{key}`" not in page] == []

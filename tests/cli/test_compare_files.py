"""Two files of what others measured, from what people hand over to a verdict."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from perfsuite.cli import main
from perfsuite.records.benchmark_files import read_benchmark

from ..backend_ops_text import ops_sql
from ..command_streams import Refused, Streams

DATA = Path(__file__).parents[1] / "data"
FIELD = DATA / "field"


@pytest.mark.parametrize(
    ("old", "new", "code", "told"),
    [
        ("old.sql", "new.sql", 1, ("regressed  +8.5 %", "tg24", "pass       -1.4 %", "pp64", "model_type=Q8_0")),
        ("old.jsonl", "new.jsonl", 10, ("n_gpu_layers 99 against -1, flash_attn 0 against -1", "× 2.68", "pp512")),
        ("before-backends.json", "new.sql", 10, ("incomparable: backends BLAS against CPU", "alone: pp64")),
        ("apostrophe.sql", "new.sql", 10, ("2 tests", "1 pair, too few", "5 runs of each at least")),
        ("two-runs-appended.csv", "whole.csv", 10, ("2 tests", "2 pairs, too few")),
        ("bandwidth.sql", "bandwidth.sql", 10, ("MUL_MAT n=512", "all pairs are alike")),
    ],
)
def test_files_of_any_release_are_compared(
    old: str, new: str, code: int, told: tuple[str, ...], capsys: Streams
) -> None:
    """Tests of two releases are the same where all that is set is; what is not the same is named with both values."""
    assert main(["compare", str(FIELD / old), str(FIELD / new)]) == code
    found = " ".join(capsys.readouterr().out.split("\n  "))
    assert [each for each in told if each not in found] == []
    assert max(map(len, found.splitlines()[-4:])) <= 120


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("cut-in-cpu-info.csv", "line 3: is cut short (unexpected end of data); was the benchmark stopped?"),
        ("before.md", "is Markdown of llama-bench, one mean and one deviation a test, which decide nothing"),
        ("test-mode.sql", "of 3 checks 1 passed; failed: MUL_MAT(type_a=q6_K,"),
        ("0001_v3.0.0.json", "is JSON of pytest-benchmark"),
        ("../formats/run.json", "is a run of perfsuite; 'perfsuite llama-bench export RUN.json -o jsonl'"),
    ],
)
def test_other_files_are_recognised(name: str, told: str, refused: Refused) -> None:
    """What has no times that decide is named for what it is, with the place or the right command."""
    message = refused(["compare", str(FIELD / name), str(FIELD / "new.sql")])
    assert told in message
    assert ("stopped" in message) is ("cut" in name)


_ROW: Mapping[str, Any] = json.loads((DATA / "llama-bench.jsonl").read_text("utf-8").split("\n")[0])


def _write(path: Path, second: int, ratio: float = 1.0, **changed: Any) -> str:
    """Write eight runs of two tests, the new side a second behind the old one; return the path."""
    rows = [
        {
            **_ROW,
            **changed,
            "test_time": f"2026-01-01T00:{2 * at // 60:02}:{2 * at % 60 + second:02}Z",
            "n_prompt": n_prompt,
            "n_gen": n_gen,
            "samples_ns": [round(1e6 * ratio * (1 + at * (3 + second) % 7 / 1000))],
        }
        for at in range(8)
        for n_prompt, n_gen in ((64, 0), (0, 8))
    ]
    path.write_text("".join(json.dumps(each) + "\n" for each in rows))
    return str(path)


@pytest.mark.parametrize(
    ("changed", "code", "told"),
    [
        ({"model_type": "llama ?B mostly Q4_0", "build_commit": "other", "build_number": 9}, 1, "2 regressed"),
        ({"model_filename": "elsewhere/model.gguf", "avg_power_w": 4.5, "stddev_ns": 7}, 1, "2 regressed"),
        ({"cpu_strict": 0, "poll": "50", "defrag_thold": "-1.000000", "later": "auto"}, 1, "2 regressed"),
        ({"cpu_info": "Cortex-A76"}, 10, "incomparable: cpu_info AMD EPYC against Cortex-A76"),
        ({"gpu_info": "GTX 1060", "backends": "CUDA"}, 10, "gpu_info unset against GTX 1060, backends CPU against"),
        ({"poll": 0}, 10, "poll unset against 0"),
        ({"n_threads": 4}, 10, "n_threads 2 against 4"),
        ({"of_tomorrow": 3}, 10, "of_tomorrow unset against 3"),
        ({"model_size": 80000000}, 10, "model_size 75785472 against 80000000"),
        ({"model_type": "llama 256M IQ4_NL - 4.5 bpw"}, 10, "model_type Q4_0 against IQ4_NL - 4.5 bpw"),
    ],
    ids=str,
)
def test_only_what_may_differ_differs(
    tmp_path: Path, capsys: Streams, changed: Mapping[str, Any], code: int, told: str
) -> None:
    """Names for display, times and builds; any other difference is named, and is no regression."""
    old, new = _write(tmp_path / "old", 0), _write(tmp_path / "new", 1, 1.3, **changed)
    assert main(["compare", old, new]) == code
    found = capsys.readouterr().out
    assert told in " ".join(found.split("\n  "))
    assert ("regressed" in found) is (code == 1)


def test_tests_of_one_side_are_listed(tmp_path: Path, capsys: Streams) -> None:
    """With what tells them apart; what both have is judged without them, and named where it is shared above."""
    old, new = _write(tmp_path / "old", 0), _write(tmp_path / "new", 1)
    more = _write(tmp_path / "more", 1, n_threads=8)
    Path(new).write_text(Path(new).read_text() + Path(more).read_text())
    assert main(["compare", old, new]) == 0
    assert f"in {new} alone: pp64 n_threads=8; tg8 n_threads=8" in " ".join(capsys.readouterr().out.split("\n  "))
    assert main(["compare", old, more, "--json"]) == 10
    tests = json.loads(capsys.readouterr().out)["tests"]
    assert [(each["outcome"], each["reason"]) for each in tests] == [("incomparable", "n_threads 2 against 8")] * 2


def _utf_16(text: str) -> bytes:
    return text.replace("\n", "\r\n").encode("utf-16")


def _with_logs(text: str) -> bytes:
    lines = text.splitlines()
    log = 'ggml_vulkan: 0 = AMD\'s "RADV" (radv), fp16: 1;'
    told = (f"{each}\n{log}" if each.endswith((");", "}", "},")) else each for each in lines)
    return "\n".join([log, "", *told]).encode()


@pytest.mark.parametrize("name", ["llama-bench.json", "llama-bench.jsonl", "field/whole.csv", "field/old.sql"])
@pytest.mark.parametrize(
    "change",
    [
        lambda text: text.encode("utf-8-sig"),
        _utf_16,
        lambda text: text.encode("utf-16-le"),
        _with_logs,
        lambda text: (text + "\n" + text).encode(),
        lambda text: f"PRAGMA foreign_keys=OFF;\nBEGIN TRANSACTION;\n{text}COMMIT;\n".encode(),
    ],
    ids=["mark", "utf-16", "utf-16-le", "logs", "twice", "dump"],
)
def test_how_a_file_was_written_down_does_not_matter(tmp_path: Path, name: str, change: Callable[[str], bytes]) -> None:
    """A byte-order mark, UTF-16, lines of a log between, two outputs in one file, and a dump change no test."""
    text = (DATA / name).read_text("utf-8")
    (tmp_path / "changed").write_bytes(change(text))
    found = read_benchmark(tmp_path / "changed")
    assert set(found) == set(read_benchmark(DATA / name))
    assert len(found) in (len(read_benchmark(DATA / name)), 2 * len(read_benchmark(DATA / name)))


def test_a_test_is_named_by_what_tells_it_apart(tmp_path: Path, capsys: Streams) -> None:
    """The lines above the table have the parameters that operators share, all of them or those of one name."""
    rows = [f"2026-01-01T00:00:0{at}Z" for at in range(2)]
    text = "".join(
        ops_sql(*((began, 10.0) for began in rows), operator=operator, parameters=f"type_a=q8_0,m=4096,{rest}")
        for operator, rest in (("MUL_MAT", "k=64,n=1"), ("MUL_MAT", "k=64,n=8"), ("ADD", "ne=[4096,1,1,1]"))
    )
    (tmp_path / "ops.sql").write_text(text)
    assert main(["compare", *[str(tmp_path / "ops.sql")] * 2]) == 10
    lines = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
    assert lines[:2] == ["backend_name=CPU, type_a=q8_0, m=4096", "MUL_MAT: k=64"]
    assert [line.split("  ")[-1] for line in lines[3:6]] == ["MUL_MAT n=1", "MUL_MAT n=8", "ADD ne=[4096,1,1,1]"]


def test_renamed_parameters_are_the_same_test(tmp_path: Path, capsys: Streams) -> None:
    """Releases of test-backend-ops renamed some, and wrote others later that old ones had at 0."""
    for name, parameters in (
        ("old.sql", "hs=64,nh=8,nr=4,kv=512,nb=1,mask=1,type_KV=f16"),
        ("new.sql", "hsk=64,hsv=64,nh=8,nr23=[4,1],kv=512,nb=1,mask=1,sinks=0,type_K=f16,type_V=f16,permute=[0,1,2,3]"),
    ):
        (tmp_path / name).write_text(
            ops_sql(("2026-01-01T00:00:01Z", 1.0), operator="FLASH_ATTN_EXT", parameters=parameters)
        )
    assert main(["compare", str(tmp_path / "old.sql"), str(tmp_path / "new.sql")]) == 10
    assert "1 test, margin 5 %: 1 inconclusive" in capsys.readouterr().out


@pytest.mark.parametrize("side", ["old", "new"])
def test_what_its_tool_calls_wrong_has_no_speed(tmp_path: Path, capsys: Streams, side: str) -> None:
    """The first line reports it, whichever side has it, and the files are no pass."""
    for name, second in (("old", 0), ("new", 1)):
        rows = [(f"2026-01-01T00:00:{2 * at + second:02}Z", 100.0 + at % 3) for at in range(8)]
        (tmp_path / name).write_text(ops_sql(*rows, n_failed=1 if name == side else 0))
    assert main(["compare", str(tmp_path / "old"), str(tmp_path / "new")]) == 1
    found = capsys.readouterr().out
    assert found.startswith(f"invalid: MUL_MAT: in the {side} file its check failed (NMSE 1.93); it has no speed")
    assert "µs" not in found

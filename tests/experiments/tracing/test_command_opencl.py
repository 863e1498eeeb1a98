"""``perfsuite trace``: any program under a recorder."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from perfsuite.cli import main
from perfsuite.measure.kernel_runtime import opencl_environment
from perfsuite.measure.opencl_backend import OpenClLayers
from tests.command_streams import Refused, Streams
from tests.synthetic_opencl import EPOCH_NS, command, drifting, log_header, steady_commands, trace, write_log

#: Launches kernels on a queue of its own, and starts itself again to do the same.
_PROGRAM = """
import os, sys
import numpy as np
import pyopencl as cl

if "child" not in sys.argv:
    import subprocess
    subprocess.run([sys.executable, *sys.argv, "child"], check=True)
print("to stdout", flush=True)
context = cl.Context([cl.get_platforms()[int(os.environ["PLATFORM"])].get_devices()[0]])
queue = cl.CommandQueue(context)
program = cl.Program(context, "kernel void twice(global float *x) { x[get_global_id(0)] *= 2; }").build()
values = np.ones(4096, np.float32)
buffer = cl.Buffer(context, cl.mem_flags.READ_WRITE, values.nbytes)
cl.enqueue_copy(queue, buffer, values)
kernel = program.twice
for _ in range(10):
    kernel(queue, values.shape, None, buffer)
cl.enqueue_copy(queue, values, buffer)
queue.finish()
assert (values == 1024).all()
sys.exit(0 if "child" in sys.argv else 7)
"""

_LIMIT_S = 300


@pytest.fixture
def stored(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Replace the layer: a program finds the logs that the test puts into the folder returned, which is fresh."""
    source = tmp_path / "stored"
    source.mkdir()
    layers = OpenClLayers(tracing=Path("layer.so"), compatibility=Path("compatibility.so"))

    def run(program: list[str], environment: Mapping[str, str]) -> int:
        (tmp_path / "layers").write_text(environment["OPENCL_LAYERS"])
        for log in source.iterdir():
            (Path(environment["PERFSUITE_OPENCL_LOG"]) / log.name).write_bytes(log.read_bytes())
        return len(program) - 1

    monkeypatch.setattr("perfsuite.experiments.tracing.command_opencl.find_opencl_layers", lambda cache_dir: layers)
    monkeypatch.setattr("perfsuite.experiments.tracing.command_opencl.run_traced", run)
    monkeypatch.setattr("perfsuite.experiments.tracing.command.shutil.which", lambda program: f"/bin/{program}")
    return source


def put(folder: Path, n: int, pid: int = 4711, **fields: Any) -> None:
    """Store the log of a process with so many launches."""
    write_log(folder / f"opencl-{pid}.log", trace(steady_commands(n, drifting(ppm=20.0)), **fields))


def test_json_has_the_program_and_all_kernels(stored: Path, capsys: Streams) -> None:
    commands = [
        command(i, at := EPOCH_NS + 9000 * i, [at + 1, at + 2, at + 3, at + 4], name=i % 3 + 1) for i in range(9)
    ]
    write_log(stored / "opencl-1.log", trace(commands))
    assert main(["trace", "--opencl", "--json", "--top", "1", "program", "--json", "--", "x"]) == 3
    plain = json.loads(capsys.readouterr().out)
    assert (plain["schema"], plain["command"], plain["exit_code"]) == (3, ["program", "--json", "--", "x"], 3)
    (process,) = plain["processes"]
    assert [each["name"] for each in process["kernels"]] == ["alpha", "beta", "gamma"]
    assert len(process["devices"][0]["longest_gaps"]) == 1
    assert plain["unreadable"] == []


def test_logs_and_json_stay_where_they_are_asked_for(stored: Path, tmp_path: Path, capsys: Streams) -> None:
    put(stored, 5)
    folder = tmp_path / "a" / "b"
    assert main(["trace", "--opencl", "--output", str(folder), "--", "program"]) == 0
    assert capsys.readouterr().out.startswith("process 4711: 5 OpenCL commands")
    assert sorted(each.name for each in folder.iterdir()) == ["opencl-4711.log", "trace.json"]
    assert json.loads((folder / "trace.json").read_text())["processes"][0]["n_commands"] == 5


def test_every_process_is_told(stored: Path, capsys: Streams) -> None:
    """Processes come in the order in which they began; one that was killed is reported as such."""
    put(stored, 3, pid=20)
    later = steady_commands(2, drifting())
    for each in later:
        for field in ("host_start_ns", "host_end_ns"):
            each[field] += 10**9
    write_log(stored / "opencl-10.log", trace(later), is_ended=False)
    assert main(["trace", "--opencl", "--json", "--", "program"]) == 0
    processes = json.loads(capsys.readouterr().out)["processes"]
    assert [(each["n_commands"], each["n_unfinished"]) for each in processes] == [(3, 0), (2, None)]


@pytest.mark.usefixtures("stored")
def test_layers_of_the_users_own_stay(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("OPENCL_LAYERS", "theirs.so")
    main(["trace", "--opencl", "--", "program"])
    assert (tmp_path / "layers").read_text() == "theirs.so:layer.so"


_NO_LOG = (
    "left no log: it used no OpenCL, its loader knows no OPENCL_LAYERS, it took away the variables or the folder that "
    "the log needs, or it is still running"
)


@pytest.mark.parametrize(("logs", "expected"), [(0, _NO_LOG), (1, "enqueued no OpenCL command that was recorded")])
def test_a_program_without_opencl_is_one_line(stored: Path, capsys: Streams, logs: int, expected: str) -> None:
    if logs:
        put(stored, 0)
    assert main(["trace", "--opencl", "--", "program", "x", "y"]) == 2
    assert capsys.readouterr().out == f"perfsuite: program {expected}\n"


def test_a_log_that_cannot_be_read_is_told_beside_the_others(stored: Path, capsys: Streams) -> None:
    """A damaged log is one line on standard error; others, if any, are reported, and the exit code is not 0."""
    (stored / "opencl-9.log").write_bytes(b"")
    assert main(["trace", "--opencl", "--", "program"]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert "opencl-9.log: 0 bytes; expected a log" in err
    put(stored, 3)
    (stored / "opencl-9.log").write_bytes(log_header()[:-1] + b"\xff" + b"\x09" * 64)
    assert main(["trace", "--opencl", "--", "program"]) == 2
    out, err = capsys.readouterr()
    assert out.startswith("process 4711: 3 OpenCL commands")
    assert err.startswith("perfsuite: error: ")
    assert "opencl-9.log: damaged at byte 24" in err
    assert err.count("\n") == 1
    assert main(["trace", "--opencl", "--", "program", "x"]) == 1


@pytest.mark.usefixtures("stored")
def test_what_is_there_is_not_replaced(tmp_path: Path, refused: Refused) -> None:
    (tmp_path / "trace.json").write_text("mine")
    told = refused(["trace", "--opencl", "--output", str(tmp_path), "--", "ls"])
    assert "holds a trace.json already" in told
    assert (tmp_path / "trace.json").read_text() == "mine"


@pytest.fixture
def environment(tmp_path: Path) -> Mapping[str, str]:
    """The environment of processes that see OpenCL, with the position of the platform to use."""
    cache = tmp_path / "cache"
    cache.mkdir()
    found = {**os.environ, **opencl_environment(cache, inherited=os.environ.get("OCL_ICD_VENDORS"))}
    usable = "'FPGA' not in each.name and each.get_devices()"  # Intel's emulator comes with its runtime
    script = f"import pyopencl as cl; print([bool({usable}) for each in cl.get_platforms()].index(True))"
    done = subprocess.run(
        [sys.executable, "-c", script], env=found, capture_output=True, text=True, timeout=_LIMIT_S, check=False
    )
    if done.returncode:
        pytest.skip(f"no OpenCL device: {done.stderr.strip().splitlines()[-1]}")
    return {**found, "PLATFORM": done.stdout.strip(), "PYTHONWARNINGS": "ignore", "XDG_CACHE_HOME": str(cache)}


@pytest.mark.long
def test_a_real_program_is_traced_with_its_children(environment: Mapping[str, str], tmp_path: Path) -> None:
    """The exit code and the output are the program's, which starts itself again; both processes are complete.

    Every launch is sound, and its place on the host's clock is known to well below a millisecond.
    """
    (tmp_path / "program.py").write_text(_PROGRAM)
    line = [sys.executable, "-m", "perfsuite.cli", "trace", "--opencl", "--output", str(tmp_path / "logs"), "--"]
    done = subprocess.run(
        [*line, sys.executable, str(tmp_path / "program.py")],
        env=dict(environment),
        capture_output=True,
        text=True,
        timeout=_LIMIT_S,
        check=False,
    )
    assert (tmp_path / "logs" / "trace.json").exists(), done.stderr
    plain = json.loads((tmp_path / "logs" / "trace.json").read_text())
    assert (done.returncode, plain["exit_code"], plain["unreadable"]) == (7, 7, [])
    assert done.stdout.startswith("to stdout\nto stdout\nprocess ")
    assert "twice" in done.stdout
    assert len(plain["processes"]) == len({each["pid"] for each in plain["processes"]}) == 2
    for each in plain["processes"]:
        assert each["n_by_type"] == {"write": 1, "kernel": 10, "read": 1}
        assert (each["is_complete"], each["n_by_anomaly"]) == (True, {})
        (device,) = each["devices"]
        assert device["clock"]["error_ns"] < 1_000_000
        (kernel,) = each["kernels"]
        assert (kernel["name"], kernel["n"], kernel["occupied"]["n"]) == ("twice", 10, 10)
        assert kernel["execution"]["total_ns"] <= device["busy_ns"]

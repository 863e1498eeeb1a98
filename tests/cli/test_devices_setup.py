"""``perfsuite devices setup``: from a bare board to a suite that answers, and what it says of what is missing."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from perfsuite.cli import main
from perfsuite.device.reach import Reach
from tests.command_streams import Refused, Streams

from ..board_loopback import LoopbackBoard
from ..board_namespaces import NamespaceBoard
from ..sys_trees import plant

ROOT = Path(__file__).resolve().parent.parent.parent

#: Where the checkout keeps the wheel of llama.cpp that was compiled for this machine.
WHEELS = ROOT / ".venv" / "wheels"


def write_profile(folder: Path, reach: Reach) -> None:
    """Write the profile of a test board, which --device finds by its name ``bench``."""
    lines = ['extends = "generic-ssh"', "[reach]", f'address = "{reach.address}"', f"port = {reach.port}"]
    lines += [f'identity_file = "{reach.identity_file}"', f'known_hosts_file = "{reach.known_hosts_file}"']
    (folder / "devices").mkdir()
    (folder / "devices" / "bench.toml").write_text("\n".join([*lines, ""]))


def base_python() -> str:
    """Return the Python that made this environment: a board has none of its packages."""
    return str(getattr(sys, "_base_executable", sys.executable))


@pytest.fixture
def bench(loopback_board: LoopbackBoard, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LoopbackBoard:
    """Return a board that is the device ``bench``."""
    monkeypatch.chdir(tmp_path)
    write_profile(tmp_path, loopback_board.reach())
    return loopback_board


@pytest.fixture
def requires_index(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Skip where pip reaches no index, or the checkout has no compiled llama.cpp."""
    if not list(WHEELS.glob("llama_cpp_python-*.whl")):
        pytest.skip("no compiled wheel of llama.cpp in .venv/wheels; 'make env' makes one")
    folder = tmp_path_factory.mktemp("index")
    words = ["download", "-q", "--no-deps", "--retries", "0", "-d", str(folder), "duckdb"]
    command = [sys.executable, "-m", "pip", *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    if done.returncode:
        pytest.skip(f"no package index can be reached ({done.stderr.strip().splitlines()[-1]})")


@pytest.mark.long
@pytest.mark.usefixtures("requires_index")
def test_a_bare_board_gets_a_suite_that_answers(bench: LoopbackBoard, capsys: Streams) -> None:
    """What is installed over ssh says what it is; the second time nothing is sent or installed."""
    arguments = ["devices", "setup", "bench", "--with-python", "--wheels", str(WHEELS), "--python", base_python()]
    assert main(arguments) == 0
    out, err = capsys.readouterr()
    assert "bench: installed: " in out
    assert "next: perfsuite devices doctor bench, then pytest --device=bench" in out
    assert "making an environment" in err
    python = bench.home / ".local" / "share" / "perfsuite" / "venv" / "bin" / "python"
    asked = subprocess.run(
        [python, "-m", "perfsuite.cli.devices_installed"], capture_output=True, text=True, check=True, cwd=bench.home
    )
    assert json.loads(asked.stdout)["engine_build_id"] is not None
    assert main(arguments) == 0
    out, err = capsys.readouterr()
    assert "bench: is there already: " in out
    assert "installing" not in err


def test_a_python_that_is_not_there_is_one_line(bench: LoopbackBoard, capsys: Streams) -> None:
    """A missing interpreter is reported with the command that installs one, and nothing is left on the board."""
    assert main(["devices", "setup", "bench", "--with-python", "--python", "python9.9", "-q"]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("perfsuite: error: bench: no Python called python9.9: sudo apt-get install -y python3")
    assert err.count("\n") == 1
    assert not (bench.home / ".local").exists()


@pytest.mark.long
def test_offline_without_wheels_fails_with_pips_words(bench: LoopbackBoard, capsys: Streams, tmp_path: Path) -> None:
    """Wheels that do not suffice fail in pip's own words, and there is no installation afterwards."""
    (tmp_path / "wheels").mkdir()
    (tmp_path / "wheels" / "other-1.0-py3-none-any.whl").write_bytes(b"no wheel")
    arguments = ["devices", "setup", "bench", "--with-python", "--wheels", "wheels", "--offline", "-q", "--python"]
    assert main([*arguments, base_python()]) == 2
    err = capsys.readouterr().err
    assert "No matching distribution found for llama-cpp-python" in err
    assert "setup.log" in err
    assert err.count("\n") == 1
    assert not (bench.home / ".local" / "share" / "perfsuite" / "venv").exists()


def test_an_interrupt_ends_what_runs_on_the_board(bench: LoopbackBoard, tmp_path: Path) -> None:
    """Ctrl-C is exit code 130; what was begun there ends, leaves no link, and the next setup removes it."""
    words = ["devices", "setup", "bench", "--with-python", "--python", base_python()]
    command = [sys.executable, "-m", "perfsuite.cli", *words]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=tmp_path) as process:
        assert process.stderr is not None
        for line in process.stderr:
            if "making an environment" in line:
                process.send_signal(signal.SIGINT)
                break
        told = process.stderr.read()
        assert process.wait(60) == 130
    assert told.endswith("perfsuite: interrupted\n")
    home = bench.home / ".local" / "share" / "perfsuite"
    assert not (home / "venv").exists()
    running = subprocess.run(["pgrep", "-f", str(home)], capture_output=True, text=True, check=False)
    assert running.stdout == ""


@pytest.mark.long
def test_this_machine_is_examined(capsys: Streams) -> None:
    """The exit code says whether anything fails; each finding has its grade, what was seen and how it is fixed."""
    status = main(["devices", "doctor", "host", "--json"])
    found = {each["what"]: each for each in json.loads(capsys.readouterr().out)}
    assert status == int(any(each["grade"] == "fail" for each in found.values()))
    assert found["reach"] == {"what": "reach", "grade": "ok", "seen": "local", "mend": ""}
    assert found["suite"]["grade"] == "ok"
    assert {"governor", "load", "memory", "disk", "lock", "clock"} <= found.keys()


def test_a_device_out_of_reach_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Streams, refused: Refused
) -> None:
    """The exit code is 1, and the one line says what to do; a name that no profile has is exit code 2."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "devices").mkdir()
    (tmp_path / "devices" / "bench.toml").write_text('extends = "generic-ssh"\n[reach]\naddress = "no.invalid"\n')
    assert main(["devices", "doctor", "bench"]) == 1
    out = capsys.readouterr().out
    assert out.startswith("      bench  seen")  # as the other tables: no lines, no margin
    assert "see address in [reach] of its profile" in out
    assert "bench: 1 fail, 0 warn, 0 ok" in out
    assert "no such device" in refused(["devices", "doctor", "no-such-board"])


def test_a_board_is_examined_over_ssh(
    start_board: Callable[..., NamespaceBoard], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Streams
) -> None:
    """What its own /sys says is reported: its clocks, its zones, and the governor that its user may set."""
    plant("orangepi5", tmp_path)
    (tmp_path / "sys/devices/system/cpu/online").write_text("0-7\n")
    board = start_board(sys_tree=tmp_path / "sys")
    board.link_suite()
    write_profile(tmp_path, board.reach())
    monkeypatch.chdir(tmp_path)
    with (tmp_path / "devices" / "bench.toml").open("a") as profile:
        profile.write('[conditions]\ngovernor = "performance"\nstart_below_celsius = 40.0\n')
    main(["devices", "doctor", "bench", "--json"])
    found = {each["what"]: each for each in json.loads(capsys.readouterr().out)}
    assert found["suite"]["grade"] == found["llama.cpp"]["grade"] == found["lock"]["grade"] == "ok"
    assert found["governor"]["seen"] == "ondemand; the profile asks for performance, which root may set"
    assert found["clocks"]["seen"].startswith("from 0 on: 1.80 of 1.80 GHz; from 4 on: 2.40 of 2.40 GHz")
    assert found["temperature"]["grade"] == "warn"
    assert found["clock"]["grade"] == "ok"

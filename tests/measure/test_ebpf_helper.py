"""Which helper is used, and the one thing that is missing where none can be."""

from __future__ import annotations

import os
import platform
import shutil
import stat
import subprocess
from pathlib import Path
from typing import Any

import pytest

from perfsuite.errors import MeasurementError, NativeBuildError
from perfsuite.measure import ebpf_helper as module
from perfsuite.measure.ebpf_helper import (
    CAPABILITIES_ATTRIBUTE,
    PROTOCOL_VERSION,
    build_helper,
    build_obstacle,
    ebpf_obstacle,
    find_helper,
    helper_capabilities,
    install_helper,
    machine_obstacle,
    others_can_write,
)

from .conftest import write_script

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="it needs root to install a program")


@pytest.fixture
def built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Replace building by a script, and return where it was asked to build."""
    asked: list[Path] = []

    def build(folder: Path) -> Path:
        asked.append(folder)
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        return write_script(folder / "perfsuite-bpf", f"echo perfsuite-bpf {len(asked)}")

    monkeypatch.setattr(module, "build_helper", build)
    return asked


@pytest.mark.long
@as_root
def test_it_is_roots_own_with_two_capabilities(requires_ebpf: Path, tmp_path: Path) -> None:
    installed = install_helper(tmp_path / "libexec")
    assert installed.path == tmp_path / "libexec" / "perfsuite-bpf"
    status = installed.path.lstat()
    assert (status.st_uid, status.st_gid, stat.S_IMODE(status.st_mode)) == (0, 0, 0o755)
    assert os.getxattr(installed.path, CAPABILITIES_ATTRIBUTE) == helper_capabilities()
    assert find_helper(tmp_path, folder=installed.path.parent) == installed.path
    assert [path.name for path in installed.path.parent.iterdir()] == ["perfsuite-bpf"]
    assert subprocess.run([str(installed.path), "--check"], timeout=60, check=False).returncode == 0


@as_root
def test_a_folder_that_others_can_write_is_refused(tmp_path: Path, built: list[Path]) -> None:
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o777)
    with pytest.raises(MeasurementError, match=r"open: others than root can write there"):
        install_helper(tmp_path / "open" / "libexec")
    assert not list((tmp_path / "open").rglob("perfsuite-bpf"))


@as_root
def test_a_folder_for_building_that_others_can_replace_is_refused(
    tmp_path: Path, built: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A folder for temporary files that belongs to somebody else could be given another content meanwhile."""
    (tmp_path / "theirs").mkdir()
    os.chown(tmp_path / "theirs", 65534, 65534)
    monkeypatch.setattr(module.tempfile, "tempdir", str(tmp_path / "theirs"))
    with pytest.raises(MeasurementError, match=r"theirs: others than root can write there; let TMPDIR name"):
        install_helper(tmp_path / "libexec")
    assert built == []
    assert list((tmp_path / "theirs").iterdir()) == []


@as_root
def test_sources_that_others_can_write_are_told(
    tmp_path: Path, built: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bpf").mkdir()
    monkeypatch.setattr(module, "source_root", lambda _: tmp_path)
    assert install_helper(tmp_path / "libexec").notes == ()
    os.chown(tmp_path / "bpf", 65534, 65534)
    (note,) = install_helper(tmp_path / "libexec").notes
    assert f"built from {tmp_path}, where others than root can write ({tmp_path / 'bpf'})" in note


@as_root
def test_who_else_can_write_is_found(tmp_path: Path) -> None:
    """A shared folder counts wherever it is above a path, but one with the sticky bit does not."""
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    assert others_can_write(inner) is None
    (tmp_path / "a").chmod(0o775)
    assert others_can_write(inner) == tmp_path / "a"
    (tmp_path / "a").chmod(0o1777)
    assert others_can_write(inner) is None


BPF = Path(__file__).parents[2] / "native" / "bpf"

#: What only the other processor's kernel would tell of itself.
ARM_TYPES = "\nstruct user_pt_regs { unsigned long long regs[31]; unsigned long long sp, pc, pstate; };\n"


def test_a_helper_with_the_same_sources_is_kept(engine_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is compiled once, without a warning; the cache's key follows the sources."""
    if obstacle := build_obstacle():
        pytest.skip(f"eBPF: {obstacle}")
    built = build_helper(engine_cache)
    assert "warning" not in built.parent.with_name(f"{built.parent.name}.log").read_text()
    monkeypatch.setattr(module, "make_whole", lambda *_: pytest.fail("compiled again"))
    assert build_helper(engine_cache) == built
    said = subprocess.run([str(built), "--version"], capture_output=True, text=True, timeout=60, check=True)
    assert said.stdout == "perfsuite-bpf 1\n"


def test_its_programs_compile_for_arm(tmp_path: Path) -> None:
    if obstacle := build_obstacle():
        pytest.skip(f"eBPF: {obstacle}")
    bpftool = shutil.which("bpftool", path="/usr/sbin:/usr/bin:/sbin:/bin")
    dump = [str(bpftool), "btf", "dump", "file", "/sys/kernel/btf/vmlinux", "format", "c"]
    types = subprocess.run(dump, capture_output=True, text=True, timeout=60, check=True).stdout
    if platform.machine() != "aarch64":
        head, _, rest = types.partition("#ifndef BPF_NO_PRESERVE_ACCESS_INDEX")
        types = head + ARM_TYPES + "#ifndef BPF_NO_PRESERVE_ACCESS_INDEX" + rest
    (tmp_path / "vmlinux.h").write_text(types)
    command = ["clang", "-g", "-O2", "-Wall", "-Wextra", "-Werror", "-target", "bpf", "-mcpu=v3", "-c"]
    command += ["-D__TARGET_ARCH_arm64", f"-I{tmp_path}", f"-I{BPF}", f"-I{BPF.parent / 'include'}"]
    command += [str(BPF / "probes.bpf.c"), "-o", str(tmp_path / "probes.o")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr


GOOD = f"[ $1 = --version ] && echo perfsuite-bpf {PROTOCOL_VERSION}"


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of a stand-in for the helper, which counts as root's own."""
    write_script(tmp_path / "perfsuite-bpf", GOOD)
    monkeypatch.setattr(module, "_is_roots_own", lambda status: not status.st_mode & 0o022)
    monkeypatch.setattr(module, "_machine_obstacle", lambda: None)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    return tmp_path


def test_the_installed_helper_is_found(installed: Path, tmp_path: Path) -> None:
    assert find_helper(tmp_path, folder=installed) == installed / "perfsuite-bpf"
    write_script(installed / "perfsuite-bpf", GOOD + " || exit 0")
    assert ebpf_obstacle(tmp_path, folder=installed) is None


def test_a_helper_that_cannot_be_used_is_refused(installed: Path, tmp_path: Path) -> None:
    helper = installed / "perfsuite-bpf"

    def refused(told: str) -> None:
        with pytest.raises(MeasurementError, match=told):
            find_helper(tmp_path, folder=installed)

    write_script(helper, "echo perfsuite-bpf 99")
    refused(f"says 'perfsuite-bpf 99', perfsuite-bpf {PROTOCOL_VERSION} is needed")
    helper.write_bytes(b"\x7fELF")
    refused(r"does not run \(Exec format error\)")
    write_script(helper, GOOD)
    helper.chmod(0o775)
    refused("is not a file that belongs to root and that only root can write")
    helper.chmod(0o755)
    helper.rename(installed / "other")
    helper.symlink_to(installed / "other")
    refused("is not a file that belongs to root")


def test_root_builds_its_own(installed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not in a cache where others can write, as under sudo; what keeps it from building is what is reported."""
    (installed / "perfsuite-bpf").unlink()
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(module, "build_helper", lambda cache_dir: cache_dir / "built")
    monkeypatch.setattr(module, "others_can_write", lambda path: None)
    assert find_helper(tmp_path, folder=installed) == tmp_path / "built"
    monkeypatch.setattr(module, "others_can_write", lambda path: path.parent)
    with pytest.raises(MeasurementError, match=r"others than root can write there.*install-helper"):
        find_helper(tmp_path, folder=installed)

    def fail(_: Path) -> Path:
        raise NativeBuildError("no clang")

    monkeypatch.setattr(module, "build_helper", fail)
    assert ebpf_obstacle(tmp_path, folder=installed) == "no clang"


def test_what_others_depend_on_is_named_first() -> None:
    lacks = (
        ("machine", "riscv64", "no eBPF recorder for riscv64; it is for x86_64 and aarch64"),
        ("release", "5.4.0-150-generic", "Linux 5.4.0-150-generic; eBPF's recorder needs 5.8 or newer"),
        ("has_types", False, "no BTF: "),
        ("has_uprobes", False, "no uprobe PMU: "),
        ("lockdown", "none integrity [confidentiality]\n", "/sys/kernel/security/lockdown is 'confidentiality', "),
        ("pid_namespace", "pid:[4026532000]", "in a container: "),
    )
    facts: dict[str, Any] = {
        "machine": "x86_64",
        "release": "6.1.0-18-amd64",
        "has_types": True,
        "has_uprobes": True,
        "lockdown": "none [integrity] confidentiality\n",
        "pid_namespace": "pid:[4026531836]",
    }
    assert machine_obstacle(**facts) is None
    for name, lacking, told in reversed(lacks):
        facts[name] = lacking
        assert (machine_obstacle(**facts) or "").startswith(told)

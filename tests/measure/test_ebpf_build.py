"""What building the helper needs, and that its programs compile for both kinds of processor."""

from __future__ import annotations

import platform
import shutil
import subprocess
from pathlib import Path

import pytest

from perfsuite.errors import NativeBuildError
from perfsuite.measure import ebpf_build as module
from perfsuite.measure.ebpf_build import build_helper, build_obstacle

BPF = Path(__file__).parents[2] / "native" / "bpf"

#: What only the other processor's kernel would tell of itself.
ARM_TYPES = """
struct user_pt_regs { unsigned long long regs[31]; unsigned long long sp, pc, pstate; };
"""


@pytest.fixture
def all_there(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Stand in for a machine that has all that is needed."""
    monkeypatch.setattr(module, "KERNEL_TYPES", tmp_path)
    monkeypatch.setattr(module, "has_header", lambda _: True)
    monkeypatch.setattr(module, "_find", lambda tool: f"/usr/bin/{tool}")
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")


@pytest.mark.usefixtures("all_there")
@pytest.mark.parametrize("tool", ["clang", "bpftool"])
def test_a_missing_tool_is_named_with_its_package(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, tool: str) -> None:
    """The first tool that is missing is named, with Debian's package, and nothing is built."""
    monkeypatch.setattr(module, "_find", lambda name: None if name == tool else name)
    assert build_obstacle() == f"no {tool}; install it, Debian's {tool}"
    with pytest.raises(NativeBuildError, match=f"perfsuite-bpf: no {tool}"):
        build_helper(tmp_path)
    assert not list(tmp_path.iterdir())


@pytest.mark.usefixtures("all_there")
def test_missing_headers_and_types_are_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """libbpf's headers, the kernel's types, and a processor that there is no recorder for; or nothing."""
    assert build_obstacle() is None
    monkeypatch.setattr(module, "has_header", lambda _: False)
    assert build_obstacle() == "no bpf/libbpf.h; install libbpf's headers, Debian's libbpf-dev"
    monkeypatch.setattr(module, "KERNEL_TYPES", tmp_path / "nothing")
    assert (build_obstacle() or "").startswith("no BTF")
    monkeypatch.setattr(platform, "machine", lambda: "riscv64")
    assert build_obstacle() == "no eBPF recorder for riscv64; it is for x86_64 and aarch64"


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
    """The programs for 64-bit Arm are compiled as well, with the one type that the kernel here does not have."""
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
    done = subprocess.run(
        [*command, str(BPF / "probes.bpf.c"), "-o", str(tmp_path / "probes.o")],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr

"""The compilers that make a bundle: Debian's for another architecture, or the one of the package ziglang."""

from __future__ import annotations

import hashlib
import importlib.util
import platform
import shutil
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from perfsuite.errors import NativeBuildError, require
from perfsuite.measure.bundle.targets import BundleTarget, Processor
from perfsuite.records.whole_file import file_digest

_ASKING_LIMIT_S = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Toolchain:
    """A compiler for a target."""

    #: The words before the arguments, for C and for C++.
    cc: tuple[str, ...]
    cxx: tuple[str, ...]
    #: What it says of itself, and the hash of its programs.
    version: str
    digest: str = ""
    #: What links without the device's own libraries of the compiler.
    links: tuple[str, ...]
    #: Libraries of the compiler that go into the bundle.
    carried: tuple[Path, ...]
    #: Whether llama.cpp's threads are OpenMP's.
    has_openmp: bool
    #: What links a program that loads libraries, besides.
    program_links: tuple[str, ...] = ()
    #: A word that llama.cpp's build has for GCC, and what this compiler is given in its place.
    march: tuple[str, str] | None = None


#: Nothing of the compiler's own libraries is needed there, nor seen by other libraries of the process: a vendor's
#: OpenCL may bring a newer libstdc++. Names stay, for tracing goes by them; what debuggers read does not.
_LINKS = ("-Wl,--build-id=sha1", "-Wl,--strip-debug")

#: Features of Arm's processors that zig, as LLVM, has another name for.
_ZIG_FEATURES = {"fp16": "fullfp16", "neon-vfpv4": "neon+vfp4"}

_GCC_LINKS = ("-static-libstdc++", "-static-libgcc", "-Wl,--exclude-libs,ALL", *_LINKS)


def _gcc(target: BundleTarget, _: Processor) -> Toolchain:
    if not target.has_glibc:
        raise NativeBuildError(f"--compiler=gcc: makes nothing for {target.name}; use --compiler=zig")
    is_own = platform.machine() in target.machines
    found = [_found(f"{target.name}-{name}", name if is_own else None, target) for name in ("gcc", "g++")]
    openmp = Path(_said(found[0], "-print-file-name=libgomp.so.1"))
    if not openmp.is_absolute():
        raise NativeBuildError(f"{found[0]}: has no libgomp.so.1; install Debian's {target.package}")
    return Toolchain(
        cc=(found[0],),
        cxx=(found[1],),
        version=_said(found[1], "--version"),
        digest=_digest(*found),
        links=_GCC_LINKS,
        carried=(openmp,),
        has_openmp=True,
    )


def _found(name: str, other: str | None, target: BundleTarget) -> str:
    path = shutil.which(name) or (other and shutil.which(other))
    if not path:
        raise NativeBuildError(
            f"no {name} on the PATH; install Debian's {target.package}, or use --compiler=zig "
            "(pip install 'perfsuite[zig]')"
        )
    return path


def _zig(target: BundleTarget, processor: Processor) -> Toolchain:
    require("ziglang", "--compiler=zig", NativeBuildError)
    spec = importlib.util.find_spec("ziglang")
    assert spec is not None
    assert spec.origin is not None
    zig = str(Path(spec.origin).parent / "zig")
    is_arm = processor.name.startswith("armv")
    return Toolchain(
        cc=(zig, "cc", "-target", target.zig),
        cxx=(zig, "c++", "-target", target.zig),
        version=f"zig {_said(zig, 'version')}, {target.zig}",
        digest=_digest(zig),
        links=_LINKS,
        carried=(),
        has_openmp=False,
        program_links=() if target.has_glibc else ("-dynamic",),
        march=(f"-march={processor.name}", f"-mcpu={zig_cpu(processor.name)}") if is_arm else None,
    )


def zig_cpu(name: str) -> str:
    """Return how zig names a level of Arm's processors that GCC names so: ``generic+v8_2a+dotprod``."""
    level, *features = name.split("+")
    version = level.removeprefix("arm").replace(".", "_").replace("-", "")
    return "+".join(["generic", version, *(_ZIG_FEATURES.get(each, each) for each in features)])


#: By the name that ``--compiler`` has for them.
COMPILERS = MappingProxyType({"gcc": _gcc, "zig": _zig})


def find_toolchain(name: str, target: BundleTarget, processor: Processor) -> Toolchain:
    """Return a compiler for a target; raises `NativeBuildError` where it is not installed, with its package."""
    return COMPILERS[name](target, processor)


def suitable_compiler(*, has_musl: bool, glibc: str | None) -> str:
    """Return the compiler whose programs run on a device: zig's where its C library is another one, or older."""
    own = platform.libc_ver()[1]
    is_older = glibc is not None and own and _numbers(glibc) < _numbers(own)
    return "zig" if has_musl or is_older else "gcc"


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(each) for each in version.split(".") if each.isdecimal())


def _said(*command: str) -> str:
    """Return the first line that a compiler prints."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_ASKING_LIMIT_S, check=True)
    except (OSError, subprocess.SubprocessError) as error:
        raise NativeBuildError(f"{command[0]}: does not run ({error}); reinstall it") from error
    return done.stdout.strip().partition("\n")[0]


def _digest(*programs: str) -> str:
    return hashlib.sha256("".join(file_digest(Path(each).resolve()) for each in programs).encode()).hexdigest()[:16]


#: What a build by a command of your own may start.
_STARTED = ("cc", "c++", "gcc", "g++", "clang", "clang++", "icx", "icpx", "nvcc", "hipcc", "zig", "ld", "cmake")


def compilers_at_hand(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the compilers that a build may start, by name, with what each says of itself and the hash of its file.

    A program that stands for others, such as ccache's, says of which version these are.
    """
    named = [environment[name].split()[0] for name in ("CC", "CXX", "LD") if environment.get(name, "").split()]
    found = {name: path for name in (*named, *_STARTED) if (path := shutil.which(name)) is not None}
    known = dict.fromkeys(found, "")
    for name, path in found.items():
        with suppress(OSError):
            known[name] = _digest(path)
        with suppress(NativeBuildError):
            known[name] += f", {_said(path, '--version')}"
    return known


def cached_words(toolchain: Toolchain) -> tuple[str, ...]:
    """Return the words before a compiler that let ccache keep what it compiles; none where ccache is not installed.

    Two revisions of a checkout have most files in common. What is compiled does not depend on where it lies, so neither
    may what ccache knows it by; and a program of `write_wrappers` is the same whatever compiler it starts.
    """
    if shutil.which("ccache") is None:
        return ()
    compiler = repr((toolchain.version, toolchain.digest, toolchain.cc[1:], toolchain.cxx[1:], toolchain.march))
    known_by = f"CCACHE_COMPILERCHECK=string:{hashlib.sha256(compiler.encode()).hexdigest()}"
    return ("env", "CCACHE_BASEDIR=/", "CCACHE_NOHASHDIR=1", known_by, "ccache")


def write_wrappers(toolchain: Toolchain, folder: Path) -> None:
    """Write the programs of `wrapper_texts` into a folder."""
    for name, text in wrapper_texts(toolchain).items():
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)


def wrapper_texts(toolchain: Toolchain) -> Mapping[str, str]:
    """Return the text of a program by its name, for CMake and ccache, which take a compiler for one word."""
    quoted = {"cc": toolchain.cc, "cxx": toolchain.cxx}
    return {
        name: f'#!/bin/sh\n{_renaming(toolchain)}exec {" ".join(map(_quoted, words))} "$@"\n'
        for name, words in quoted.items()
    }


def _renaming(toolchain: Toolchain) -> str:
    """Return shell lines that put this compiler's word in the place of GCC's."""
    if toolchain.march is None:
        return ""
    gccs, own = map(_quoted, toolchain.march)
    return f'for word do shift; [ "$word" != {gccs} ] || word={own}; set -- "$@" "$word"; done\n'


def _quoted(word: str) -> str:
    return "'" + word.replace("'", "'\\''") + "'"

"""Making a bundle out of small sources: what is in it, what is kept, and what is refused in one line."""

from __future__ import annotations

import platform
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from perfsuite.cli.kept_folders import user_cache
from perfsuite.errors import DeviceError, NativeBuildError
from perfsuite.measure.bundle import engine_build, native_build
from perfsuite.measure.bundle.compilers import (
    Toolchain,
    cached_words,
    find_toolchain,
    suitable_compiler,
    wrapper_texts,
    zig_cpu,
)
from perfsuite.measure.bundle.elf import read_needs
from perfsuite.measure.bundle.making import Bundle, BundleOrder, copy_bundle, make_bundle
from perfsuite.measure.bundle.native_build import build_starter
from perfsuite.measure.bundle.targets import find_target, target_of
from perfsuite.measure.ebpf_helper import HELPER_NAME, build_obstacle
from perfsuite.measure.engine import ENGINE_LIBRARIES, engine_build_id, find_engine
from perfsuite.measure.native import source_root
from perfsuite.measure.plan import ProbePlan, dump_plan, load_record
from perfsuite.records.bundle import ENGINE, LOADER, WORKER, check_bundle

#: A project that makes libraries by the names of llama.cpp's, in no time.
_CMAKE = """
cmake_minimum_required(VERSION 3.14)
project(llama C CXX)
foreach(name ggml-base ggml-cpu ggml llama)
  add_library(${name} SHARED src/some.cpp)
  set_target_properties(${name} PROPERTIES SOVERSION 0 LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
endforeach()
add_dependencies(llama ggml-base ggml-cpu ggml)
"""


def tell(what: str, n_done: int = 0, n_all: int | None = None, /) -> None:
    """Hear nothing."""


#: It says in which file it is, as assertions do.
_SOURCE = "const char *place() { return __FILE__; }\n"


def plant_checkout(folder: Path, *, text: str = _CMAKE, source: str = _SOURCE) -> Path:
    """Write a checkout with llama.cpp's own headers, and libraries that have nothing in them."""
    for part in ("include", "ggml/include", "src"):
        (folder / part).mkdir(parents=True, exist_ok=True)
    for include in find_engine().include_dirs:
        for header in include.glob("*.h"):
            to = "include" if header.name.startswith("llama") else "ggml/include"
            shutil.copyfile(header, folder / to / header.name)
    (folder / "CMakeLists.txt").write_text(text)
    (folder / "src" / "some.cpp").write_text(source)
    return folder


def order_of(checkout: Path) -> BundleOrder:
    target = target_of(platform.machine(), has_glibc=True)
    return BundleOrder(target=target, processor=target.processor(None), llama=str(checkout))


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return plant_checkout(tmp_path_factory.mktemp("llama") / "llama.cpp")


@pytest.fixture(scope="module")
def cache_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="module")
def bundle(checkout: Path, cache_dir: Path) -> Bundle:
    return make_bundle(order_of(checkout), cache_dir, tell)


def test_a_bundle_is_whole(bundle: Bundle) -> None:
    """All files are as the manifest says, are for its machine, and need a glibc that the manifest names."""
    manifest = check_bundle(bundle.folder)
    helper = set() if build_obstacle() else {HELPER_NAME}  # made where there is what compiles it
    assert {each.path.partition("/")[0] for each in manifest.files} == {WORKER, "lib", "engine", "layers"} | helper
    assert {each.path for each in manifest.files if each.is_program} == {WORKER} | helper
    libraries = {name: bundle.folder / ENGINE / f"{name}.so.0" for name in ENGINE_LIBRARIES}
    assert manifest.engine.build_id == engine_build_id(libraries)
    needs = [read_needs(bundle.folder / each.path).least_glibc for each in manifest.files]
    assert manifest.least_glibc == ".".join(map(str, max(each for each in needs if each is not None)))
    assert manifest.suite_version in version_of(bundle.folder)


def version_of(folder: Path) -> str:
    told = subprocess.run([folder / WORKER, "--version"], capture_output=True, text=True, check=True, timeout=20)
    return told.stdout


def test_a_second_call_makes_nothing(bundle: Bundle, checkout: Path, cache_dir: Path) -> None:
    steps: list[str] = []
    again = make_bundle(order_of(checkout), cache_dir, lambda what, *_: steps.append(what))
    assert (again, steps) == (bundle, [])


def test_what_is_damaged_in_the_cache_is_made_anew(bundle: Bundle, checkout: Path, cache_dir: Path) -> None:
    """A file that was altered is never handed out; the same is made again, byte by byte."""
    before = (bundle.folder / "lib" / "libperfsuite_probe.so").read_bytes()
    (bundle.folder / "lib" / "libperfsuite_probe.so").write_text("altered")
    assert make_bundle(order_of(checkout), cache_dir, tell).manifest == bundle.manifest
    assert (bundle.folder / "lib" / "libperfsuite_probe.so").read_bytes() == before


def test_equal_content_elsewhere_makes_an_equal_bundle(bundle: Bundle, tmp_path: Path) -> None:
    """Neither the checkout's folder nor the cache's is in what is compiled."""
    elsewhere = plant_checkout(tmp_path / "another" / "llama.cpp")
    assert make_bundle(order_of(elsewhere), tmp_path / "cache", tell).manifest.digest == bundle.manifest.digest


def test_ccache_makes_no_other_bundle(
    bundle: Bundle, checkout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It gives a compiler other names of the sources, which must not come into what is compiled."""
    if shutil.which("ccache") is None:
        pytest.skip("no ccache; 'make env' installs it")
    for module in (engine_build, native_build):
        monkeypatch.setattr(module, "cached_words", lambda toolchain: ())
    assert make_bundle(order_of(checkout), tmp_path, tell).manifest.digest == bundle.manifest.digest


def test_a_copy_is_whole_and_takes_no_other_folder(bundle: Bundle, tmp_path: Path) -> None:
    copy_bundle(bundle, tmp_path / "out")
    copy_bundle(bundle, tmp_path / "out")
    assert check_bundle(tmp_path / "out") == bundle.manifest
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes").write_text("mine")
    with pytest.raises(NativeBuildError, match="already exists, and is not a bundle"):
        copy_bundle(bundle, tmp_path / "mine")
    assert (tmp_path / "mine" / "notes").read_text() == "mine"
    (tmp_path / "out" / WORKER).unlink()
    with pytest.raises(DeviceError, match=f"{WORKER}: is missing"):
        check_bundle(tmp_path / "out")


@pytest.mark.parametrize(
    ("text", "source", "told"),
    [
        ("message(FATAL_ERROR no-such-thing)\n", "", "configuring .*no-such-thing"),
        (_CMAKE, "int some( {\n", "compiling .*error"),
    ],
)
def test_a_checkout_that_does_not_build_is_one_line(tmp_path: Path, text: str, source: str, told: str) -> None:
    broken = plant_checkout(tmp_path / "llama.cpp", text=text, source=source)
    with pytest.raises(NativeBuildError, match=told) as raised:
        make_bundle(order_of(broken), tmp_path / "cache", tell)
    assert "\n" not in str(raised.value)
    assert [each for each in (tmp_path / "cache" / "cross").iterdir() if each.is_dir()] == []
    assert [each for each in (tmp_path / "cache" / "bundles").iterdir() if each.is_dir()] == []


@pytest.mark.parametrize(
    ("target", "features", "name"),
    [
        ("aarch64-linux-gnu", "fp asimd asimddp asimdhp", "armv8.2-a+dotprod"),
        ("aarch64-linux-gnu", "fp asimd asimddp asimdhp i8mm sve", "armv8.2-a+fp16+dotprod+i8mm+sve"),
        ("aarch64-linux-gnu", "sse4_2", "armv8.2-a+dotprod"),
        ("x86_64-linux-gnu", "sse4_2 ssse3 popcnt avx avx2 bmi2 fma f16c", "x86-64-v3"),
        ("x86_64-linux-gnu", "sse4_2 ssse3 popcnt", "x86-64-v2"),
    ],
)
def test_the_best_that_all_processors_have_is_chosen(target: str, features: str, name: str) -> None:
    """A level is one whose every feature is there; where none is known, it is the usual one."""
    assert find_target(target).best_processor(features.split()).name == name


@pytest.mark.parametrize(
    ("name", "zigs"),
    [
        ("armv8-a", "generic+v8a"),
        ("armv8.2-a+fp16+dotprod+i8mm+sve", "generic+v8_2a+fullfp16+dotprod+i8mm+sve"),
        ("armv7-a+neon-vfpv4", "generic+v7a+neon+vfp4"),
    ],
)
def test_zig_has_names_of_its_own_for_processors_of_arm(tmp_path: Path, name: str, zigs: str) -> None:
    """llama.cpp's build asks by GCC's names; the program that CMake calls hands zig its own, and all else as it is."""
    assert zig_cpu(name) == zigs
    march = (f"-march={name}", f"-mcpu={zigs}")
    shown = Toolchain(
        cc=("printf", "%s|"), cxx=("false",), version="", links=(), carried=(), has_openmp=False, march=march
    )
    (tmp_path / "cc").write_text(wrapper_texts(shown)["cc"])
    words = ["-c", f"-march={name}", "a b.c"]
    told = subprocess.run(["sh", tmp_path / "cc", *words], capture_output=True, text=True, check=True, timeout=20)
    assert told.stdout == f"-c|-mcpu={zigs}|a b.c|"


def test_ccache_knows_a_compiler_by_its_version_and_words_and_not_by_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another environment's zig is the same compiler; a newer one at the same place is another, and so are flags."""
    order = order_of(Path())
    here = find_toolchain("gcc", order.target, order.processor)
    assert cached_words(here) == cached_words(replace(here, cc=("/elsewhere/gcc",), cxx=("/elsewhere/g++",)))
    others = (here, replace(here, version="gcc 99"), replace(here, cxx=(*here.cxx, "-g")))
    assert len({cached_words(each) for each in others}) == (3 if shutil.which("ccache") else 1)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert cached_words(here) == ()


def test_a_bundle_with_a_c_library_of_its_own_starts_by_it(bundle: Bundle, tmp_path: Path) -> None:
    """A static program starts the worker by the library beside it, and the worker takes that for itself."""
    copied = tmp_path / "bundle"
    shutil.copytree(bundle.folder, copied)
    (copied / WORKER).rename(copied / "lib" / WORKER)
    own = next(
        each for each in map(Path, ("/lib64/ld-linux-x86-64.so.2", "/lib/ld-linux-aarch64.so.1")) if each.exists()
    )
    shutil.copy(own, copied / LOADER)
    order = order_of(Path())
    toolchain = find_toolchain("gcc", order.target, order.processor)
    build_starter(
        source_root("src/starter/starter.c") / "src/starter/starter.c", copied / WORKER, toolchain, tmp_path / "log"
    )
    assert read_needs(copied / WORKER).libraries == ()
    assert bundle.manifest.suite_version in version_of(copied)
    (tmp_path / "plan").write_bytes(dump_plan(ProbePlan(cache_dir=str(tmp_path), n_threads=1, budget_ms=1)))
    words = [copied / WORKER, "run", tmp_path / "plan", tmp_path / "record"]
    subprocess.run(words, capture_output=True, check=True, timeout=60)
    assert load_record((tmp_path / "record").read_bytes(), "probes")["ceilings"]
    (copied / LOADER).unlink()
    lost = subprocess.run([copied / WORKER, "--version"], capture_output=True, text=True, check=False, timeout=20)
    assert (lost.returncode, "ld-musl.so: cannot be started" in lost.stderr) == (127, True)


@pytest.mark.long
def test_a_bundle_for_musl_runs_where_there_is_no_c_library(tmp_path: Path) -> None:
    """By zig, in a root with nothing but the bundle and /proc, its worker loads the probes and measures.

    It is the bundle whose work is counted, and kept in the user's cache: zig first compiles its own libraries.
    """
    target = find_target(f"{platform.machine()}-linux-musl")
    order = BundleOrder(target=target, processor=target.processor(None), compiler="zig")
    try:
        find_toolchain("zig", target, order.processor)
    except NativeBuildError as error:
        pytest.skip(f"zig: {error}")
    made = make_bundle(order, user_cache(), tell)
    assert made.manifest.least_glibc is None
    assert {each.path for each in made.manifest.files if each.is_program} == {WORKER, LOADER}
    assert read_needs(made.folder / "lib" / WORKER).libraries == ("libc.so",)
    root = tmp_path / "root"
    (root / "proc").mkdir(parents=True)
    shutil.copytree(made.folder, root / "bundle")
    (root / "plan").write_bytes(dump_plan(ProbePlan(cache_dir="/", n_threads=1, budget_ms=1)))
    alone = ["unshare", "--map-root-user", "--mount", "--pid", "--fork", "--root", root, "--mount-proc"]
    words = [*alone, f"/bundle/{WORKER}", "run", "/plan", "/record"]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
    assert load_record((root / "record").read_bytes(), "probes")["ceilings"]


def test_a_device_with_an_older_or_another_library_gets_zigs() -> None:
    """glibc 2.17 is older than any that compiles here; musl is another one."""
    assert suitable_compiler(has_musl=True, glibc=None) == "zig"
    assert suitable_compiler(has_musl=False, glibc="2.17") == "zig"
    assert suitable_compiler(has_musl=False, glibc=platform.libc_ver()[1]) == "gcc"


@pytest.mark.long
def test_the_required_llama_is_compiled_for_arm() -> None:
    """The bundle of the required release for 64-bit Arm has at most 40 MB, and is kept in the user's cache."""
    if shutil.which("aarch64-linux-gnu-g++") is None:
        pytest.skip("no aarch64-linux-gnu-g++; install Debian's g++-aarch64-linux-gnu")
    target = find_target("aarch64-linux-gnu")
    order = BundleOrder(target=target, processor=target.processor(None), has_opencl=True)
    made = make_bundle(order, user_cache(), tell)
    assert made.manifest.size_bytes <= 40_000_000
    assert made == make_bundle(replace(order, llama=None), user_cache(), tell)
    assert {read_needs(made.folder / each.path).machine for each in made.manifest.files} == {(64, 183)}

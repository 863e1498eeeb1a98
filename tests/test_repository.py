"""What holds for the repository as a whole: names, docstrings, the changelog, the bootstrap script."""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

#: Names that say nothing about what is inside.
VAGUE_NAMES = {"utils", "util", "helpers", "helper", "common", "misc", "manager", "model", "data", "result", "results"}

#: Directories that exist on one machine only; spelt in pieces, so that this file passes its own test.
#: What lies in /srv and /opt is none: examples are there, whoever else works there.
PRIVATE_DIRECTORIES = (
    "/" + "tmp/w/",
    "/" + "work/",
    *(f"{place}/" for place in (ROOT, Path.home()) if str(place) != "/" and place.parts[1] not in ("srv", "opt")),
)


def suite_files() -> list[Path]:
    return sorted((ROOT / "perfsuite").rglob("*.py"))


def relative(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def text(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def undocumented(source: str) -> Iterator[str]:
    """Names of the public functions and classes at the top of a module that have no docstring."""
    for node in ast.parse(source).body:
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) or node.name.startswith("_"):
            continue
        if not (ast.get_docstring(node) or "overload" in ast.unparse(node).split("def ")[0]):
            yield node.name


def private_paths(content: bytes, directories: tuple[str, ...]) -> list[str]:
    """The directories that occur in the content as the beginning of a path."""
    present = [directory for directory in directories if directory.encode() in content]
    return [name for name in present if re.search(rb"(?<![\w.~/-])" + re.escape(name.encode()), content)]


def repository_files() -> list[Path]:
    command = ["git", "-C", str(ROOT), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    if shutil.which("git") is None:
        pytest.skip("git is not installed")
    listing = subprocess.run(command, capture_output=True, check=False)
    if listing.returncode:
        pytest.skip("not a git checkout")
    paths = [ROOT / os.fsdecode(name) for name in listing.stdout.split(b"\0") if name]
    return [path for path in paths if path.is_file() and not path.is_symlink()]


def bootstrap(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command, variables = [str(ROOT / "tools/bootstrap.sh"), *arguments], {**os.environ, **environment}
    return subprocess.run(command, env=variables, capture_output=True, text=True, check=False, timeout=60)


def test_every_module_has_a_docstring() -> None:
    assert [relative(path) for path in suite_files() if not ast.get_docstring(ast.parse(text(path)))] == []


def test_every_public_name_has_a_docstring() -> None:
    missing = [f"{relative(path)}: {name}" for path in suite_files() for name in undocumented(text(path))]
    assert missing == []


def test_no_module_has_a_vague_name() -> None:
    names = [path.parent / path.stem if path.stem != "__init__" else path.parent for path in suite_files()]
    assert [relative(name) for name in names if name.name in VAGUE_NAMES] == []


def test_every_test_module_belongs_to_a_module() -> None:
    """A file test_<module>.py, or test_<module>_<part>.py, is of that module or folder; native and arm are of none.

    Views and the contract are of a whole folder.
    """
    orphans = []
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        if path.stem in ("test_contract", "test_records", "test_views"):
            continue
        package = path.parent.relative_to(ROOT / "tests")
        words = path.stem.removeprefix("test_").split("_")
        candidates = [*("_".join(words[: n + 1]) for n in range(len(words))), path.stem]
        homes = [ROOT / "perfsuite" / package / name for name in candidates]
        if package not in (Path(), Path("native"), Path("arm")) and not any(
            home.is_dir() or home.with_suffix(".py").is_file() for home in homes
        ):
            orphans.append(relative(path))
    assert orphans == []


def test_the_changelog_has_the_version() -> None:
    """The version of pyproject.toml has a section in the changelog and is the package's own."""
    found = re.search(r'^version = "(.+)"$', text(ROOT / "pyproject.toml"), re.MULTILINE)
    assert found is not None
    assert f"\n## [{found[1]}]" in text(ROOT / "CHANGELOG.md")
    assert f'__version__ = "{found[1]}"' in text(ROOT / "perfsuite" / "__init__.py")


def test_no_file_names_a_private_directory() -> None:
    found = [
        f"{relative(path)}: {directory}"
        for path in repository_files()
        for directory in private_paths(path.read_bytes(), PRIVATE_DIRECTORIES)
    ]
    assert found == []


@pytest.mark.parametrize(
    ("python", "told"),
    [
        ("/does/not/exist", "Python 3.10 or newer is needed, /does/not/exist does not run"),
        ("{folder}/python3.9", "python3.9 is 3.9"),
    ],
)
def test_bootstrap_refuses_an_interpreter_that_is_old_or_does_not_run(tmp_path: Path, python: str, told: str) -> None:
    old = tmp_path / "python3.9"
    old.write_text("#!/bin/sh\necho /usr/bin/python3.9 3.9\n")
    old.chmod(0o755)
    outcome = bootstrap(PYTHON=python.format(folder=tmp_path))
    assert (outcome.returncode, outcome.stderr.count("\n")) == (1, 1)
    assert told in outcome.stderr


@pytest.mark.parametrize(
    ("macros", "config", "is_broken"),
    [
        ("#define __AMX_INT8__ 1", '__asm__ volatile ("ldtilecfg\\t%X0" :: "m" (*((const void **)__config)));', True),
        ("#define __AMX_INT8__ 1", "__builtin_ia32_ldtilecfg (__config);", False),
        ("#define __AVX2__ 1", '__asm__ volatile ("ldtilecfg\\t%X0" :: "m" (*((const void **)__config)));', False),
    ],
)
def test_a_compiler_that_breaks_amx_is_told(tmp_path: Path, macros: str, config: str, is_broken: bool) -> None:
    """One whose header reads 8 bytes of a tile configuration breaks llama.cpp where the processor has AMX."""
    (tmp_path / "header").write_text(f"void _tile_loadconfig (const void *__config)\n{{\n  {config}\n}}\n")
    compiler = tmp_path / "c++"
    compiler.write_text(f"#!/bin/sh\ncase $* in *-dM*) echo '{macros}';; *) cat {tmp_path}/header;; esac\n")
    compiler.chmod(0o755)
    told = re.search(r"^breaks_amx\(\) \{.*?^\}", text(ROOT / "tools/bootstrap.sh"), re.MULTILINE | re.DOTALL)
    assert told is not None
    script = f"set -euo pipefail\n{told[0]}\nif breaks_amx; then echo broken; fi"
    asked = subprocess.run(
        ["bash", "-c", script], capture_output=True, text=True, check=True, env={**os.environ, "CXX": str(compiler)}
    )
    assert (asked.stdout, asked.stderr) == ("broken\n" if is_broken else "", "")

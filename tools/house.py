#!/usr/bin/env python3
"""Prints how heavy the house is: files, lines and tokens by folder, and what a door imports with all that follows.

    tools/house.py          the table; exit code 1 where a figure is beyond what `MOST` allows
    tools/house.py --all    and the folders within perfsuite/

A door's closure are the modules of perfsuite/ that it imports at its start, directly or by others. `MOST` has the
figures of the last landing: a change that makes one smaller lowers it, so that the house does not grow unseen.
"""

from __future__ import annotations

import ast
import io
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DOORS = ("perfsuite.plugin.hooks", "perfsuite.verdict.compare", "perfsuite.cli")

#: The most lines of each folder, and the most files of each door's closure.
MOST = {
    "perfsuite": 93_150,
    "tests": 70_950,
    "tools": 3_970,
    "native": 30_470,
    "perfsuite.plugin.hooks": 153,
    "perfsuite.verdict.compare": 13,
}

_NATIVE = {".c", ".cpp", ".h", ".cl"}
_NO_TOKENS = {
    *(tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT),
    *(tokenize.COMMENT, tokenize.ENCODING, tokenize.ENDMARKER),
}


def main() -> int:
    """Print the table; say what is beyond."""
    weights = {name: weight(ROOT / name) for name in ("perfsuite", "tests", "tools", "native")}
    if "--all" in sys.argv[1:]:
        folders = sorted(each for each in (ROOT / "perfsuite").iterdir() if (each / "__init__.py").exists())
        weights |= {f"perfsuite/{each.name}": weight(each) for each in folders}
    for name, (n_files, n_lines, n_tokens) in weights.items():
        print(f"{name:<24} {n_files:6,} files {n_lines:8,} lines" + (f" {n_tokens:8,} tokens" if n_tokens else ""))
    modules = {_dotted(path): path for path in (ROOT / "perfsuite").rglob("*.py")}
    closures = {door: closure(door, modules) for door in DOORS}
    for door, found in closures.items():
        n_lines = sum(_n_lines(modules[each]) for each in found)
        print(f"{door:<26} imports {len(found) - 1} files, with itself {n_lines:,} lines")
    sizes = {name: n_lines for name, (_, n_lines, _) in weights.items()} | {
        door: len(found) for door, found in closures.items()
    }
    beyond = [f"{name}: {sizes[name]:,} (most {most:,})" for name, most in MOST.items() if sizes[name] > most]
    for each in beyond:
        print(f"house: grew beyond the last landing: {each}", file=sys.stderr)
    return bool(beyond)


def weight(folder: Path) -> tuple[int, int, int]:
    """Return how many files, lines and Python tokens a folder has."""
    suffixes = _NATIVE if folder.name == "native" else {".py"}
    files = [each for each in folder.rglob("*") if each.suffix in suffixes]
    return len(files), sum(map(_n_lines, files)), sum(_n_tokens(each) for each in files if each.suffix == ".py")


def closure(door: str, modules: dict[str, Path]) -> set[str]:
    """Return the modules that a door imports when it is imported, itself among them."""
    found, waiting = set[str](), [door]
    while waiting:
        name = waiting.pop()
        if name in modules and name not in found:
            found.add(name)
            waiting += imported(ast.parse(modules[name].read_text()))
    return found


def imported(tree: ast.AST) -> Iterator[str]:
    """Yield the dotted names that a module imports outside of its functions, with the packages that they are in."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Import):
            yield from (part for alias in node.names for part in _with_packages(alias.name))
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield from (part for alias in node.names for part in _with_packages(f"{node.module}.{alias.name}"))
        elif isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            yield from imported(ast.Module(body=node.orelse, type_ignores=[]))
        elif not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield from imported(node)


def _with_packages(name: str) -> Iterator[str]:
    parts = name.split(".")
    yield from (".".join(parts[:length]) for length in range(1, len(parts) + 1))


def _dotted(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _n_lines(path: Path) -> int:
    return path.read_text(encoding="utf-8").count("\n")


def _n_tokens(path: Path) -> int:
    tokens = tokenize.generate_tokens(io.StringIO(path.read_text(encoding="utf-8")).readline)
    return sum(each.type not in _NO_TOKENS for each in tokens)


if __name__ == "__main__":
    sys.exit(main())

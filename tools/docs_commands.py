#!/usr/bin/env python
"""Runs the commands of the documentation, each page in a copy of the checkout, and compares what they print.

Where more is allowed than 'make test' does, the copy is a clone of what is committed with a .venv/ of its own, so that
'make perf' does there what it does for a reader.

    python tools/docs_commands.py --list                  every command, and what it needs
    python tools/docs_commands.py                         those that need nothing, as 'make test' runs them
    python tools/docs_commands.py --with minutes          those that take minutes, too; a machine on which nothing runs
    python tools/docs_commands.py --all                   with everything that a command may need, except files of a
                                                          reader's own: root, eBPF, OpenCL, a server, the network
    python tools/docs_commands.py --show docs/tutorial    print what commands print; pages by a part of their name

Commands that are left out are counted at the end. Exit code 1 where one did not end or print as its page shows.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tests.docs_needs import NEEDS, Shelf  # noqa: E402
from tests.docs_pages import Command, Fence, commands, fences, page_name, page_paths  # noqa: E402
from tests.docs_run import PageError, run_page  # noqa: E402
from tests.docs_sandbox import Ran, files_of, make_clone, make_sandbox  # noqa: E402

#: The time that a command may take here.
LIMIT_S = 4 * 3600

#: Nobody but the reader has these.
_NEVER = "files"

_Told = list[tuple[Fence, tuple[tuple[Command, frozenset[str]], ...]]]


def told(path: Path) -> _Told:
    """Return the fences of a page, with their commands and what these need."""
    shelf, found = Shelf(there=files_of()), []
    for fence in fences(path.read_text("utf-8"), page_name(path)):
        if fence.file:
            shelf.there.add(fence.file)
        found.append((fence, tuple((command, shelf.needs(command.text)) for command in commands(fence))))
    return found


def list_commands(pages: dict[str, _Told]) -> None:
    """Print every command with what it needs."""
    for page in pages.values():
        for _, found in page:
            for command, needs in found:
                print(f"{command.place:34} {','.join(sorted(needs)) or '-':24} {' '.join(command.text.split())}")
    print("\n" + "\n".join(f"{need:8} {meaning}" for need, meaning in NEEDS.items()))


def run_pages(pages: dict[str, _Told], allowed: frozenset[str], is_shown: bool) -> int:
    """Run the pages one after the other; return how many failed."""
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        for number, (name, page) in enumerate(pages.items()):
            place, home = Path(folder) / str(number), Path(folder) / "home"
            sandbox = make_clone(place, home, _wheels()) if allowed else make_sandbox(place, home)
            try:
                run_page(page, sandbox, allowed=allowed, limit_s=LIMIT_S, listen=_told_of if is_shown else _named)
            except PageError as failure:
                failed += 1
                print(f"{failure}\n{name}: failed", file=sys.stderr)
    return failed


def _wheels() -> Path:
    """Return the folder of llama.cpp as compiled for this machine."""
    told = subprocess.run([ROOT / "tools" / "bootstrap.sh", "--wheel-dir"], capture_output=True, text=True, check=True)
    return Path(told.stdout.strip()).parent


def _named(command: Command, ran: Ran) -> None:
    print(f"{command.place:34} {ran.status:3}  {' '.join(command.text.split())}", flush=True)


def _told_of(command: Command, ran: Ran) -> None:
    print(f"$ {command.text}\n{ran.output}", end="", flush=True)


def left_out(pages: dict[str, _Told], allowed: frozenset[str]) -> Counter[str]:
    """Count what is not run, by what it needs and has not."""
    lacking = (needs - allowed for page in pages.values() for _, found in page for _, needs in found)
    return Counter(", ".join(sorted(needs)) for needs in lacking if needs)


def main() -> int:
    """List or run what is asked for."""
    parser = argparse.ArgumentParser(description="Run the commands of the documentation.")
    parser.add_argument("pages", nargs="*", metavar="PAGE", help="pages by a part of their name (default: all)")
    parser.add_argument("--list", action="store_true", help="run nothing; tell what each command needs")
    parser.add_argument("--with", dest="allowed", default="", metavar="NEED,..", help=f"of {', '.join(NEEDS)}")
    parser.add_argument("--all", action="store_true", help="whatever a command needs, but for files of a reader's own")
    parser.add_argument("--show", action="store_true", help="print what the commands print")
    options = parser.parse_args()
    named = {page_name(path): path for path in page_paths()}
    chosen = [name for name in named if not options.pages or any(part in name for part in options.pages)]
    allowed = frozenset(NEEDS if options.all else filter(None, options.allowed.split(","))) - {_NEVER}
    if not chosen or not allowed <= NEEDS.keys():
        parser.error(f"no such {'page' if not chosen else 'need'}")
    pages = {name: told(named[name]) for name in chosen}
    if options.list:
        list_commands(pages)
        return 0
    failed = run_pages(pages, allowed, options.show)
    for needs, count in left_out(pages, allowed).most_common():
        print(f"left out, needs {needs}: {count}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

"""Every command of the documentation is run here, or taken by the parsers that would run it, or is somebody else's.

What a command needs beyond a checkout and some seconds is known from the command (`tests/docs_needs.py`). One that
needs nothing is run, in the order of its page, in a copy of the checkout, and has to print what the page shows.
``tools/docs_commands.py --all`` runs the others too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from .docs_needs import Shelf
from .docs_pages import Command, Fence, commands, fences, inline_code, page_name, page_paths
from .docs_run import PageError, run_page, runnable
from .docs_sandbox import files_of, make_sandbox
from .docs_syntax import complaint, inline_complaint

PAGES = {page_name(path): path for path in page_paths()}

#: Fences that may hold anything but a terminal. Commands within files, as jobs of CI systems have them, are parsed.
PLAIN = {"text", "python", "toml", "json", "yaml", "ini", "sql", "c", "html", "make", "{toctree}"}

FILES = {"bash", "yaml"}

#: A line that somebody is meant to type.
TYPED = re.compile(r"^(\$ |perfsuite [a-z]|pytest -|make [a-z]+$|tools/\w+\.sh)", re.MULTILINE)


#: A command that measures this machine, and may be disturbed.
MEASURES = re.compile(r"\bpytest --device=host\b")

#: What came of each page that measures, in this process: why it was given up, or None.
DISTURBED: dict[str, str | None] = {}


#: A line of a job's steps that calls a command of this repository.
STEP = re.compile(r"\s*(?:- )?(?:run: )?((?:\.venv/bin/)?(?:pytest|perfsuite|make) .*)")


@pytest.fixture(scope="session")
def docs_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a home that the pages share: what one of them compiles or writes into the cache, the next one finds."""
    return tmp_path_factory.mktemp("docs-home")


def told(page: str) -> Iterator[tuple[Fence, tuple[tuple[Command, frozenset[str]], ...]]]:
    """Yield the fences of a page, with their commands and what these need."""
    shelf = Shelf(there=files_of())
    for fence in fences(PAGES[page].read_text("utf-8"), page):
        if fence.file:
            shelf.there.add(fence.file)
        yield fence, tuple((command, shelf.needs(command.text)) for command in commands(fence))


@pytest.mark.parametrize("page", PAGES)
def test_every_fence_says_what_it_holds(page: str) -> None:
    """Commands are in fences called console, with a prompt; all others are named for what they hold and have none."""
    for fence in fences(PAGES[page].read_text("utf-8"), page):
        if fence.language == "console":
            assert fence.text.startswith("$ "), f"{page}:{fence.line}: begins without a prompt"
        elif fence.language not in FILES:
            assert fence.language in PLAIN, f"{page}:{fence.line}: a fence called {fence.language!r}"
            typed = TYPED.search(fence.text)
            assert typed is None or fence.language == "text", f"{page}:{fence.line}: {typed[0]!r} outside of a console"
            assert not re.search(r"^\$ ", fence.text, re.MULTILINE), (
                f"{page}:{fence.line}: a prompt outside of a console"
            )


@pytest.mark.parametrize("page", PAGES)
def test_the_parsers_take_every_command(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each option, subcommand, target and script that a page names is there, in jobs of CI systems too."""
    monkeypatch.chdir(tmp_path)  # parsing --benchmark-json=FILE makes the file
    typed = [*((each.place, each.text) for each in all_commands(page)), *steps(page)]
    assert [f"{place}: {wrong}" for place, text in typed if (wrong := complaint(text))] == []


@pytest.mark.parametrize("page", PAGES)
def test_the_options_that_a_page_speaks_of_are_there(page: str) -> None:
    """What stands between back-quotes and begins like a command names a subcommand and options that there are."""
    code = inline_code(PAGES[page].read_text("utf-8"))
    assert [f"{page}:{line}: {wrong}" for line, text in code if (wrong := inline_complaint(text))] == []


@pytest.mark.parametrize("page", PAGES)
def test_a_fence_says_what_its_commands_need(page: str) -> None:
    """The comment above a fence names all that one of its commands needs, and nothing else."""
    for fence, found in told(page):
        needed = frozenset().union(*(needs for _, needs in found))
        assert fence.needs == needed, f"{page}:{fence.line}: says {sorted(fence.needs)}, needs {sorted(needed)}"


def measures(page: str) -> bool:
    """Whether a command of a page that is run here measures."""
    return any(MEASURES.search(command.text) for command in runnable(told(page)))


def run_pages() -> Iterator[object]:
    """Yield the pages of which a command is run: they take long, and some measure."""
    for page in PAGES:
        if any(runnable(told(page))):
            yield pytest.param(page, marks=pytest.mark.measures if measures(page) else pytest.mark.long)


def silence(disturbed: Mapping[str, str | None]) -> str | None:
    """Say that no page at all that measures could be compared with what it shows; None where one was, or none ran."""
    reasons = [reason for reason in disturbed.values() if reason is not None]
    if not reasons or len(reasons) < len(disturbed):
        return None
    return "\n".join([f"all {len(reasons)} pages that measure were disturbed, twice each:", *reasons])


@pytest.mark.parametrize("page", tuple(run_pages()))
def test_the_commands_of_a_page_do_what_it_shows(page: str, tmp_path: Path, docs_home: Path) -> None:
    """A reader who types what the page shows, word for word, gets what it shows; a run that was disturbed, again."""
    for attempt in ("first", "second"):
        try:
            run_page(told(page), make_sandbox(tmp_path / attempt, docs_home))
        except PageError as error:
            failure = error
        else:
            note(page, None)
            return
    if failure.was_disturbed:
        why = str(failure).splitlines()[0]
        note(page, why)
        pytest.skip(f"other programs had the processors, twice: {why}")
    pytest.fail(str(failure), pytrace=False)


def note(page: str, why: str | None) -> None:
    """Keep what came of a page that measures."""
    if measures(page):
        DISTURBED[page] = why


@pytest.mark.measures
def test_some_page_that_measures_was_not_disturbed() -> None:
    """One page may be skipped on a busy machine; where all are, nothing shows that what they say is true."""
    if why := silence(DISTURBED):
        pytest.fail(why, pytrace=False)


def all_commands(page: str) -> list[Command]:
    """The commands of a page."""
    return [command for fence in fences(PAGES[page].read_text("utf-8"), page) for command in commands(fence)]


def steps(page: str) -> Iterator[tuple[str, str]]:
    """The commands in files that a page shows: lines of a shell's own file, and those of this repository in jobs."""
    for fence in fences(PAGES[page].read_text("utf-8"), page):
        for number, line in enumerate(fence.text.splitlines() if fence.language in FILES else (), fence.line + 1):
            match = STEP.match(line) if fence.language == "yaml" else re.match(r"(.+)", line)
            if match:
                yield f"{page}:{number}", re.sub(r"\$\{\{.*?\}\}", "1", match[1])


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("perfsuite held-out --no-such-option", "unrecognized arguments: --no-such-option"),
        ("perfsuite nonsense", "nonsense"),
        ("pytest --device=host --perf-nonsense", "--perf-nonsense"),
        ("make nonsense", "no target 'nonsense'"),
        ("make perf ARGS='--perf-nonsense'", "--perf-nonsense"),
        ("tools/nonsense.sh", "no such script"),
        ("cat x | nonsense", "nonsense"),
        ("python tools/nonsense.py", "no such file"),
    ],
)
def test_a_wrong_command_is_found(text: str, wrong: str) -> None:
    """A misspelt option, subcommand, target, script or program is reported."""
    assert wrong in (complaint(text) or "")

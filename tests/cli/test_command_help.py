"""What ``--help`` of every subcommand says."""

from __future__ import annotations

import argparse
import re
import shlex
from collections import Counter
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path

import pytest

from perfsuite.cli.command_help import ParagraphFormatter
from perfsuite.cli.registry import COMMANDS, Purpose, summary_of
from perfsuite.cli.whole_parser import parser_of, whole_parser
from tests.command_streams import Streams

_ROOT = Path(__file__).resolve().parents[2]

#: What stands behind 'perfsuite trace' has parsers of its own.
_WORDS = ("view", "agree", "check", "install-helper")

Parser = argparse.ArgumentParser


def _subcommands(parser: Parser) -> dict[str, Parser]:
    """Return the parsers right below one, by name."""
    found = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    return dict(found[0].choices) if found else {}


def _leaves(name: str, parser: Parser) -> Iterator[tuple[str, Parser]]:
    """Yield a parser and all below it by their command lines."""
    yield name, parser
    for each, below in _subcommands(parser).items():
        yield from _leaves(f"{name} {each}", below)


def _word_parser(word: str) -> Parser:
    """Return the parser that a word of 'perfsuite trace' uses, without doing what it does."""
    parser = import_module(f"perfsuite.experiments.tracing.command_{word.replace('-', '_')}")._parser()
    assert isinstance(parser, Parser)
    return parser


def _all() -> dict[str, Parser]:
    parsers = dict(_leaves("perfsuite", whole_parser()))
    del parsers["perfsuite"]
    for word in _WORDS:
        parsers |= dict(_leaves(f"perfsuite trace {word}", _word_parser(word)))
    return parsers


_PARSERS = _all()
_TOP = [name for name in _PARSERS if name.count(" ") == 1]


#: Commands without ``--json``, and why: a program reads their answer as it is.
_WITHOUT_JSON = {
    "perfsuite completion": "the answer is a script of the shell",
    "perfsuite devices": "'perfsuite devices list' has it",
    "perfsuite llama-bench export": "the answer is a file of llama-bench, and -o says in which form",
    **dict.fromkeys(
        (name for name in _PARSERS if name.startswith("perfsuite export ")), "the answer is the format that is named"
    ),
}


def test_every_command_that_answers_has_json() -> None:
    """All except those whose answer a program reads already; it is a switch everywhere."""
    answering = {
        name: parser
        for name, parser in _PARSERS.items()
        if not _subcommands(parser) or "run" in parser._defaults  # a command with actions answers by these
    }
    without = {name for name, parser in answering.items() if "--json" not in parser._option_string_actions}
    assert without == _WITHOUT_JSON.keys()
    found = [parser._option_string_actions["--json"] for name, parser in answering.items() if name not in without]
    assert {(type(each), each.nargs) for each in found} == {(argparse._StoreTrueAction, 0)}


def test_every_help_begins_with_a_sentence() -> None:
    """It says what the command does, and ends in a full stop; no option and no argument is without words."""
    first = {name: (parser.description or "").split("\n\n")[0].strip() for name, parser in _PARSERS.items()}
    assert {name: text for name, text in first.items() if not re.fullmatch(r"[A-Z].*[.]", text, re.DOTALL)} == {}
    bare = [
        (name, action.dest)
        for name, parser in _PARSERS.items()
        for action in parser._actions
        if not action.help and not isinstance(action, argparse._SubParsersAction)
    ]
    assert bare == []


@pytest.mark.parametrize("name", _TOP)
def test_every_command_has_its_line_examples_and_pages(name: str) -> None:
    """The first sentence is its line in 'perfsuite --help'; below the options are examples, and where to read on."""
    parser = _PARSERS[name]
    assert parser.description is not None
    first = parser.description.split("\n\n")[0]
    assert first.rstrip(".").lower() == summary_of(name.split(" ")[1]).lower()
    for part in ("examples:\n", "see also: "):
        assert part in (parser.epilog or "")


def test_every_help_is_short() -> None:
    """A purpose is one line of 80 columns, an option one clause, and two examples are enough."""
    summaries = {name: (parser.description or "").split("\n\n")[0] for name, parser in _PARSERS.items()}
    assert {name: text for name, text in summaries.items() if len(text) > 80 - (17 if name in _TOP else 0)} == {}
    long = [
        (name, action.dest, action.help)
        for name, parser in _PARSERS.items()
        for action in parser._actions
        if action.help and action.help != argparse.SUPPRESS and (len(action.help) > 180 or action.help.endswith("."))
    ]
    assert long == []
    many = Counter(name for name, _ in _examples())
    assert {name: n for name, n in many.items() if n > 2} == {}


@pytest.mark.parametrize("columns", [60, 80, 200])
def test_every_help_can_be_shown(columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """At any width; lines that are no command to be copied and no usage fit into it."""
    monkeypatch.setenv("COLUMNS", str(columns))
    long = []
    for name, parser in _PARSERS.items():
        text = parser.format_help()
        folded = re.sub(r"\Ausage:.*?\n\n", "", text, flags=re.DOTALL).splitlines()
        long += [(name, line) for line in folded if len(line) > columns and not line.startswith("  ")]
        assert "%%" not in text, name
    assert long == []


def _examples() -> Iterator[tuple[str, str]]:
    for name, parser in _PARSERS.items():
        block = re.search(r"^examples:\n(.*?)\n\n", parser.epilog or "", re.DOTALL | re.MULTILINE)
        lines = block[1].replace("%%", "%").splitlines() if block else []
        yield from ((name, line.strip()) for line in lines if not line.strip().startswith("# "))


def test_every_command_has_an_example_of_its_own() -> None:
    """Examples are of the command whose help shows them."""
    assert set(_TOP) - {name for name, _ in _examples()} == set()
    assert [(name, line) for name, line in _examples() if name not in line] == []


def test_every_example_is_accepted(capsys: Streams) -> None:
    """The parser that runs takes each line as it stands."""
    for _, line in _examples():
        words = shlex.split(line.replace('eval "$(', "").replace(')"', "").split(" > ")[0])
        words = words[words.index("perfsuite") + 1 :]
        is_word = words[0] == "trace" and words[1] in _WORDS
        parser = _word_parser(words[1]) if is_word else parser_of(words)
        try:
            options = parser.parse_args(words[2:] if is_word else words)
        except SystemExit:
            pytest.fail(f"{line}: {capsys.readouterr().err}")
        assert is_word or callable(options.run), line


def test_every_page_that_a_help_names_is_there() -> None:
    """What a reader is sent to exists."""
    texts = {name: f"{_PARSERS[name].description} {_PARSERS[name].epilog}" for name in _TOP}
    pages = [(name, page) for name, text in texts.items() for page in re.findall(r"docs/[\w/.-]+\.md", text)]
    assert [(name, page) for name, page in pages if not (_ROOT / page).is_file()] == []


def test_every_command_has_a_module_and_a_purpose() -> None:
    """The registry lists each once, by the headings' order, and each loads."""
    names = [command.name for command in COMMANDS]
    assert len(set(names)) == len(names)
    assert {command.purpose for command in COMMANDS} == set(Purpose)
    order = [list(Purpose).index(command.purpose) for command in COMMANDS]
    assert order == sorted(order)
    assert set(_subcommands(whole_parser())) == set(names)


def _speaking() -> Iterator[str]:
    """Yield the commands whose modules tell of progress or make remarks."""
    for path in sorted((_ROOT / "perfsuite" / "cli").glob("*.py")):
        text = path.read_text("utf-8")
        if re.search(r"\b(progress|remarks|tell_picture)\(", text) and "def add_parser" in text:
            name = path.stem.replace("_", "-")
            is_command = f"perfsuite {name}" in _PARSERS
            yield name if is_command else path.stem.replace("_", " ", 1)  # an action, such as 'devices setup'


@pytest.mark.parametrize("name", sorted(_speaking()))
def test_what_speaks_can_be_quiet(name: str) -> None:
    """Whatever says more than its answer has --quiet, short -q."""
    leaves = [
        parser for at, parser in _PARSERS.items() if at.startswith(f"perfsuite {name}") and not _subcommands(parser)
    ]
    assert leaves
    assert all({"-q", "--quiet"} <= parser._option_string_actions.keys() for parser in leaves)


def test_paragraphs_are_kept_and_indented_lines_stay() -> None:
    """A paragraph is folded by itself; a line that is indented is one of its own, with a hanging indent."""
    paragraph = "one two three four five six seven\nand more"
    listing = "list:\n  1    some words that are long\n  perfsuite a b c d e f g h"
    told = ParagraphFormatter("x")._fill_text(f"{paragraph}\n\n{listing}", 24, "")
    assert told.splitlines() == [
        "one two three four five",
        "six seven and more",
        "",
        "list:",
        "  1    some words that",
        "       are long",
        "  perfsuite a b c d e f g h",
    ]


def test_help_is_an_answer(capsys: Streams) -> None:
    """It goes to standard output, with exit code 0."""
    run: Callable[[list[str]], int] = import_module("perfsuite.cli").main
    with pytest.raises(SystemExit, match="0"):
        run(["forecast", "--help"])
    out, err = capsys.readouterr()
    assert out.startswith("usage: perfsuite forecast")
    assert err == ""

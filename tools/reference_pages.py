#!/usr/bin/env python
"""Writes pages of docs/reference, the man page and the completion of shells from the code.

python tools/reference_pages.py           write the pages
python tools/reference_pages.py --check   exit code 1 where a page is not what would be written
"""

from __future__ import annotations

import argparse
import inspect
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from help_texts import CommandText, Option, command_texts, option
from man_page import man_page

from perfsuite import errors
from perfsuite.cli.command_help import EXITS
from perfsuite.cli.completion import completion_script
from perfsuite.cli.registry import Purpose
from perfsuite.device.profile.search import shipped_names
from perfsuite.option_table import INI_VALUES, OPTIONS

ROOT = Path(__file__).resolve().parent.parent
REFERENCE = ROOT / "docs" / "reference"

#: What the wheel installs below the prefix of its environment.
SHARE = ROOT / "share"

#: By shell, where its packages look for completion.
COMPLETIONS = {
    "bash": "bash-completion/completions/perfsuite",
    "zsh": "zsh/site-functions/_perfsuite",
    "fish": "fish/vendor_completions.d/perfsuite.fish",
}

#: An option that so many commands take is described once.
_SHARED_BY = 2

_WRITTEN = "<!-- Written by tools/reference_pages.py from the code; change that, not this page. -->"

_OPTIONS = """# Options of pytest

{written}

`pytest --help` lists these under *perfsuite*. Without `--device` nothing is measured. Write a path with an equals sign
(`--perf-dir=DIR`): pytest takes an existing path after a space as a test path.

Each option also has a name that begins with `--perf-`: `--perf-device` for `--device`. Use it in scripts. A short name
is left to a plugin or `conftest.py` that has it too, and a line in pytest's header says so.

{table}

## The ini file

In `pyproject.toml` under `[tool.pytest]` (pytest 9) or `[tool.pytest.ini_options]`, or in `pytest.ini` under
`[pytest]`. `-o NAME=VALUE` overrides them for one run.

{ini}
"""

_COMMANDS = """# Commands

{written}

[Commands by purpose](../commands-by-purpose.md) says which one answers what. Every command has `--help`.
`perfsuite --version` shows the versions that affect measurements. Each command names its
[exit codes](exit-codes.md) other than 0 (done), 2 (a mistake) and 130 (Ctrl-C).

## Options that several commands share

{shared}

{commands}"""

_EXIT_CODES = """# Exit codes

{written}

## pytest --device

| code | meaning |
|---|---|
| 0 | no case failed or looks slower; some may be new, invalid, incomparable or undecided |
| 1 | a case is REGRESSED, SLOW or IMPOSSIBLE; cases could not be measured; `--baseline=record` recorded nothing; or `--perf-strict` found a new, invalid, incomparable, suspect or undecided case |
| 2 | interrupted (Ctrl-C, SIGTERM, SIGHUP), or the link to the device was lost |
| 3 | an error in pytest or perfsuite |
| 4 | a mistake on the command line, or the device is not available |
| 5 | `-k` or `-m` left no case |
| 10 | nothing could be judged, or none of end_to_end, prefill and decode; with `--perf-allow-undecided` this is 0 |
| 11 | a case is SUSPECT, that is it looks slower, not proven; or there were fewer than five pairs. `--perf-suspect=pass` makes this 0, `fail` 1 |

A run that ends with 0, 1, 2, 10 or 11 writes `run.json`. `--baseline=record` stores valid cases of runs that end with 0
or 1. A signal ends a run in order: the device's settings are restored and its lock is released. A second one, 2 s later
or more, ends it at once; the next run restores the settings. `nohup` keeps SIGHUP away.

## perfsuite

{table}

[Commands](commands.md) names the exit codes that mean something else. `perfsuite trace -- PROGRAM` has the program's
exit code, or 128 + N after signal N. A reader that closes the pipe early, as `head` does, is no error.
"""  # noqa: E501

_ERRORS = """# Errors

{written}

A mistake ends in one line: where, what was expected, and what to do. It begins with `ERROR:` (pytest, exit code 4)
or `perfsuite: error:` (exit code 2).

```console
$ perfsuite forecast --architecture lama-3.2-1b --quantization q4_0 --prompt 64 --new-tokens 24 --tops 4 --bandwidth 34
perfsuite: error: architecture 'lama-3.2-1b' is not in the catalogue; did you mean llama-3.2-1b or ...?
$ echo $?
2
$ perfsuite report docs
perfsuite: error: docs: holds no run.json; name the folder or the run.json of a run
$ echo $?
2
```

A failure during a run does not end it: its cases are INVALID, the closing lines have the reason, and the exit code is
1. A traceback is a bug; report it.

A program catches these classes of `perfsuite.errors`:

{table}
"""


def pages() -> dict[Path, str]:
    """Return what is written, by path."""
    commands = command_texts()
    return {
        REFERENCE / "options.md": options_page(),
        REFERENCE / "commands.md": commands_page(commands),
        REFERENCE / "errors.md": errors_page(),
        REFERENCE / "exit-codes.md": exit_codes_page(),
        SHARE / "man" / "man1" / "perfsuite.1": man_page(commands),
        **{SHARE / path: completion_script(shell, devices=shipped_names()) for shell, path in COMPLETIONS.items()},
    }


def options_page() -> str:
    """Return the page of pytest's options and ini values."""
    rows = [_row(each.written, each.help) for each in pytest_options()]
    ini = [_row(name, text) for name, text in sorted(INI_VALUES.items())]
    return _OPTIONS.format(written=_WRITTEN, table=_table(("option", ""), rows), ini=_table(("value", ""), ini))


def pytest_options() -> Iterator[Option]:
    """Yield the options that the plugin adds to pytest."""
    for name, settings in OPTIONS.items():
        value = settings.get("metavar") or "|".join(settings.get("choices", ()))
        yield option(name, value, settings["help"])


def exit_codes_page() -> str:
    """Return the page of the exit codes."""
    rows = [f"| {code} | {_cell(meaning)} |" for code, meaning in EXITS.items()]
    return _EXIT_CODES.format(written=_WRITTEN, table=_table(("code", "meaning"), rows))


def errors_page() -> str:
    """Return the page of the errors."""
    classes = [
        each for each in vars(errors).values() if inspect.isclass(each) and issubclass(each, errors.PerfsuiteError)
    ]
    rows = [_row(each.__name__, inspect.cleandoc(each.__doc__ or "")) for each in classes]
    return _ERRORS.format(written=_WRITTEN, table=_table(("class", ""), rows))


def commands_page(commands: Sequence[CommandText]) -> str:
    """Return the page of the command and all its subcommands."""
    shared = shared_options(commands)
    sections = [
        part
        for purpose in Purpose
        for part in (
            f"## {purpose.value}",
            *(section(each, shared) for each in commands if each.purpose is purpose),
        )
    ]
    rows = [_row(each.written, each.help) for each in sorted(shared.values(), key=lambda each: each.key)]
    return _COMMANDS.format(
        written=_WRITTEN,
        shared=_table(("option", ""), rows),
        commands="\n\n".join(sections) + "\n",
    )


def shared_options(commands: Sequence[CommandText]) -> dict[tuple[str, str], Option]:
    """Return the options that several commands take, each with its commonest default; a name stands for one of them."""
    found = [each for command in commands for each in {each.key: each for each in _all_options(command)}.values()]
    by_name: dict[str, Option] = {}
    for key, n in Counter(each.key for each in found).most_common():
        if n >= _SHARED_BY:
            usual = Counter(each for each in found if each.key == key).most_common(1)[0][0]
            by_name.setdefault(key[0], usual)
    return {each.key: each for each in by_name.values()}


def _all_options(command: CommandText) -> Iterator[Option]:
    yield from command.options
    for action in command.actions:
        yield from action.options


def section(command: CommandText, shared: dict[tuple[str, str], Option]) -> str:
    """Return the section of a command: what it does, its options, and those of its actions."""
    own = [_row(each.written, each.help) for each in command.options if each.key not in shared]
    parts = [
        f"### {command.name}",
        _prose([command.summary, *command.about]),
        "```text\n" + "\n".join([command.usage, "", *command.examples]).strip() + "\n```",
        _table(("option", ""), own) if own else "",
        "\n".join(_action_line(command, each) for each in command.actions),
        _action_options(command, shared),
        _remarks(command, shared),
    ]
    return "\n\n".join(filter(None, parts))


def _action_line(command: CommandText, action: CommandText) -> str:
    usage = action.usage.removeprefix(f"{command.name} ").replace("[options] ", "").removesuffix(" [options]")
    return f"- `{usage}`: {_cell(' '.join([action.summary, *action.about]))}"


def _action_options(command: CommandText, shared: dict[tuple[str, str], Option]) -> str:
    """Return the options of a command's actions, each with the actions that take it."""
    takers: dict[Option, list[str]] = {}
    for action in command.actions:
        for each in action.options:
            if each.key not in shared:
                takers.setdefault(each, []).append(_action_name(command, action))
    before = {each: f"{told}: " if (told := _takers(command, names)) else "" for each, names in takers.items()}
    rows = [_row(each.written, each.help, before[each]) for each in takers]
    return _table(("option of an action", ""), rows) if rows else ""


def _takers(command: CommandText, names: Sequence[str]) -> str:
    """Return the actions that take an option; nothing where all do."""
    others = [name for each in command.actions if (name := _action_name(command, each)) not in names]
    if not others:
        return ""
    is_most = len(others) == 1 and len(names) > 2
    return f"all but `{others[0]}`" if is_most else f"`{'`, `'.join(names)}`"


def _action_name(command: CommandText, action: CommandText) -> str:
    return action.name.removeprefix(f"{command.name} ")


def _remarks(command: CommandText, shared: dict[tuple[str, str], Option]) -> str:
    """Return the last lines of a section: shared options, exit codes, files, pages."""
    taken = {each.key: each for each in _all_options(command) if each.key in shared and not each.is_operand}
    names = [_shared_name(command, each, shared[key]) for key, each in taken.items()]
    codes = "; ".join(f"{code}: {_cell(meaning)}" for code, meaning in command.exits)
    lines = [
        f"Shared: {', '.join(names)}." if names else "",
        f"Exit code {codes}." if codes else "",
        f"Writes {_cell(command.writes)}." if command.writes else "",
        f"See {', '.join(map(_link, command.see))}." if command.see else "",
    ]
    return " ".join(filter(None, lines))


def _shared_name(command: CommandText, taken: Option, usual: Option) -> str:
    """Return the name of a shared option, with what is different here: names, the actions that take it, the default."""
    name = taken.names.split(", ")[-1] if taken.names == usual.names else taken.names
    takers = [
        _action_name(command, each) for each in command.actions if taken.key in [option.key for option in each.options]
    ]
    notes = [
        _takers(command, takers) if takers and taken not in command.options else "",
        "" if taken.default == usual.default else f"default {_cell(taken.default)}" if taken.default else "no default",
    ]
    told = "; ".join(filter(None, notes))
    return f"`{name}` ({told})" if told else f"`{name}`"


def _link(page: str) -> str:
    """Return a page or another command as a link."""
    name = page.removesuffix(" --help")
    if name.startswith("perfsuite "):
        return f"[{name.removeprefix('perfsuite ')}](#{name.replace(' ', '-')})"
    path = Path(page)
    return f"[{path.stem.replace('-', ' ')}]({'../' / path.relative_to('docs')})"


def _row(written: str, text: str, before: str = "") -> str:
    return f"| `{written.replace('|', chr(92) + '|')}` | {before}{_cell(text)} |"


def _table(heads: tuple[str, str], rows: Iterable[str]) -> str:
    return "\n".join([f"| {heads[0]} | {heads[1]} |", "|---|---|", *rows])


def _cell(text: str) -> str:
    """Return a help text as it reads on a page: options and quoted words are code, and nothing else is Markdown."""
    plain = " ".join(text.split())
    for letter in "\\`*_<>|[]":
        plain = plain.replace(letter, f"\\{letter}")
    linked = re.sub(r"\bdocs/([\w/-]+)\.md", r"[\1](../\1.md)", plain)
    return re.sub(r"(?<!\w)'([a-z-][^']*)'|(?<![\w>-])(--?[a-z][\w=.-]*\w|-[a-z])\b", _code, linked)


def _code(found: re.Match[str]) -> str:
    return f"`{(found[1] or found[2]).replace(chr(92), '')}`"


def _prose(paragraphs: Iterable[str]) -> str:
    return "\n\n".join(map(_cell, paragraphs))


def _differs(path: Path, text: str, is_check: bool) -> bool:
    """Whether a file is another; in a shell's completion the options count, for versions of shtab write the rest."""
    found = path.read_text("utf-8")
    if is_check and path.is_relative_to(SHARE) and path.suffix != ".1":
        return _options_in(found) != _options_in(text)
    return found != text


def _options_in(script: str) -> set[str]:
    return set(re.findall(r"(?:--|-l )([a-z][a-z0-9-]+)", script))


def main() -> int:
    """Write the pages, or check them."""
    parser = argparse.ArgumentParser(description="Write the pages of the reference from the code.")
    parser.add_argument("--check", action="store_true", help="write nothing; exit code 1 where a page differs")
    options = parser.parse_args()
    written = pages()
    differing = [path for path, text in written.items() if not path.exists() or _differs(path, text, options.check)]
    for path in differing if not options.check else ():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(written[path], encoding="utf-8")
    for path in differing:
        print(f"{path.relative_to(ROOT)}: {'is not what the code says' if options.check else 'written'}")
    return int(bool(differing) and options.check)


if __name__ == "__main__":
    sys.exit(main())

"""``perfsuite completion``."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path

import shtab

from perfsuite.cli.command_help import Commands, add_command

#: Of those that shtab knows, the shells that are tried out in the suite's tests or named in its documentation.
_SHELLS = tuple(name for name in shtab.SUPPORTED_SHELLS if name in ("bash", "zsh", "fish", "tcsh"))

_FILE_WORDS = {"FILE", "PATH", "RUN", "RUN.json", "POLICY.json", "PLAN", "GGUF", "PATH|NAME", "NAME|PATH"}


def add_parser(commands: Commands) -> None:
    """Add the subcommand."""
    parser = add_command(
        commands,
        "completion",
        about="Packages install these scripts for bash, zsh and fish.",
        examples={
            'eval "$(perfsuite completion bash)"': "in ~/.bashrc",
            'perfsuite completion zsh > "${fpath[1]}/_perfsuite"': "once, before compinit",
        },
        see=("docs/terminal.md",),
        options=[(f"shell {{{','.join(_SHELLS)}}}", "the shell")],
    )
    parser.set_defaults(run=_completion)


def _completion(options: argparse.Namespace) -> int:
    print(completion_script(options.shell))
    return 0


def completion_script(shell: str, *, devices: Sequence[str] | None = None) -> str:
    """Return the script of a shell that shtab supports; it names these devices, or those that there are here."""
    from perfsuite.cli.command_help import whole_parser  # loads every subcommand

    parser = whole_parser()
    _complete(parser, _names() | ({} if devices is None else {"device": devices}))
    return str(shtab.complete(parser, shell))


def _names() -> dict[str, Sequence[str]]:
    """Return by argument what there is to choose from, where the parser takes more than that."""
    from perfsuite.cli.plot import PICTURES
    from perfsuite.device.profile import profile_names
    from perfsuite.expectation.roofline.sweeps import SWEEPS
    from perfsuite.workload import catalog
    from perfsuite.workload.scenario import scenario_names
    from perfsuite.workload.variant import variant_names

    return {
        "device": profile_names(),
        "scenario": scenario_names(),
        "architecture": catalog.names(),
        "variant": variant_names(),
        "pictures": tuple(PICTURES),
        "sweep": (*SWEEPS, "all"),
        "program": ("view", "agree", "check", "install-helper"),
    }


def _complete(parser: argparse.ArgumentParser, names: Mapping[str, Sequence[str]]) -> None:
    """Say what arguments are completed with; this parser reads no command line, so that choices may be any."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            action.help = "what to do"  # what is hidden in a help is not completed either
            for each in action.choices.values():
                _complete(each, names)
        elif action.choices is None and action.dest in names:
            action.choices = names[action.dest]
        elif action.metavar == "DIR":
            action.complete = shtab.DIRECTORY  # type: ignore[attr-defined]
        elif action.type is Path or action.metavar in _FILE_WORDS:
            action.complete = shtab.FILE  # type: ignore[attr-defined]

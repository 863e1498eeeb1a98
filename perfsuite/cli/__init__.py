"""The ``perfsuite`` command. `perfsuite.cli.registry` says how one is added to its subcommands."""

from __future__ import annotations

import sys
from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one subcommand; a user's mistake is one line on standard error and exit code 2."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    try:
        from perfsuite.cli.ending import ended  # which takes long enough that Ctrl-C comes meanwhile
    except KeyboardInterrupt:
        sys.stderr.write("perfsuite: interrupted\n")
        return 130
    return ended(lambda: _run(words))


def _run(words: Sequence[str]) -> int:
    if words[:1] == ["--version"]:  # before the commands are looked for, which takes longer than the answer
        from perfsuite.cli.versions import versions_text

        print(versions_text())
        return 0
    from perfsuite.cli.command_help import parser_of
    from perfsuite.cli.given_paths import check_paths
    from perfsuite.device.end_requests import signals_held_off

    with signals_held_off():  # libraries that are imported with a subcommand start threads
        parser = parser_of(words)
    options = parser.parse_args(words)
    check_paths(options)
    return int(options.run(options))

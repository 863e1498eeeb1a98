"""The command that measures some cases of a run again, or all of it in another way."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from perfsuite.records.judgement import Judgement
from perfsuite.records.run_origin import RunOrigin
from perfsuite.report.reproduce import (
    SUITE_KINDS,
    parameter_name,
    run_command,
    selecting_expression,
    shell_word,
)

#: More cases than this make a command that nobody reads.
MOST_NAMED = 2

#: Options of a run that take no value.
_FLAGS = frozenset(
    {"--perf-strict", "--perf-long", "--perf-fidelity", "--perf-overhead", "--perf-trace", "--perf-allow-undecided"}
)


def command_again(
    origin: RunOrigin, cases: Sequence[Judgement] = (), changed: Mapping[str, str | None] | None = None
) -> str:
    """Return the command that measures the cases again: all that the run chose where there are none, or too many.

    Where the run's arguments are not known, ``...`` stands for its device; an option that is `changed` to None goes.
    """
    changed = dict(changed or {})
    named = _choice(cases)
    selection = () if named else origin.selection
    left_out = {*changed, *(word.split("::")[0] for word in selection if "::" in word)}
    kept = [each for each in _joined(origin.arguments or ("--device=...",)) if each.partition("=")[0] not in left_out]
    base = run_command(replace(origin, arguments=tuple(kept)))
    given = (f"{name}={shell_word(value)}" for name, value in changed.items() if value is not None)
    return " ".join([base, *named, *map(shell_word, selection), *given])


def option_value(origin: RunOrigin, name: str) -> str | None:
    """Return what an option of the run was given, None where it was not."""
    given = (word.partition("=") for word in _joined(origin.arguments))
    return next((value for option, _, value in given if option == name), None)


def _choice(cases: Sequence[Judgement]) -> list[str]:
    if not 0 < len(cases) <= MOST_NAMED or any(each.kind not in SUITE_KINDS for each in cases):
        return []
    expressions = [selecting_expression(parameter_name(each.case_id)) for each in cases]
    return ["-k", shell_word(" or ".join(expressions))]


def _joined(arguments: Sequence[str]) -> list[str]:
    """Write each option and its value as one word, so that they stay together."""
    joined: list[str] = []
    for argument in arguments:
        last = joined[-1] if joined else ""
        awaits_value = last.startswith("--") and "=" not in last and last not in _FLAGS
        if awaits_value and not argument.startswith("-"):
            joined[-1] += f"={argument}"
        else:
            joined.append(argument)
    return joined

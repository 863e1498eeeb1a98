"""The command that measures a case again."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from perfsuite.option_table import own_name
from perfsuite.records.case import COUNTED
from perfsuite.records.counts import METRICS
from perfsuite.records.outcome import Judgement, Outcome
from perfsuite.records.run_file import RunFile
from perfsuite.records.run_origin import RunOrigin
from perfsuite.report.visible import is_visible

#: Kinds whose tests carry the case id as their parameter, which ``-k`` finds.
SUITE_KINDS = frozenset(
    {
        *("phase", "operator", "binding", "percentile", "kernel", "engine_kernel", "roofline"),
        *("fidelity", "overhead", "trace", "counted"),
    }
    | {"shape-kept", "shape-hunt"}
)

#: What pytest takes as one word of an expression, and the words that mean something else there.
_WORDS = re.compile(r"[\w:+\-.\[\]\\/]+", re.ASCII)
_RESERVED = frozenset({"and", "or", "not"})

#: A variable that a shell lets one set in front of a command.
_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

_NOT_ALONE = "Other cases may be measured as well: pytest's -k does not take every sign of this name."

#: What begins the reason of something that was recorded and has no test.
_UNCLAIMED = "recorded, and no case claims it"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reproduction:
    """How a case is measured again."""

    #: For a shell; None where the run does not say how it was made.
    command: str | None
    #: A sentence: what the command does beyond the case, or why there is none; empty where there is nothing to say.
    note: str


def reproductions(run: RunFile) -> tuple[Reproduction, ...]:
    """Return for each judgement of a run, in its order, the command that measures it again."""
    origin = run.origin
    if not origin.arguments:
        told = Reproduction(
            command=None,
            note="The command that measures a case again is not known: this run did not keep its arguments.",
        )
        return (told,) * len(run.judgements)
    base = run_command(origin)
    names = [parameter_name(each.case_id).lower() for each in run.judgements if _is_suites(each)]
    return tuple(_reproduction(each, base, names) for each in run.judgements)


def run_command(origin: RunOrigin) -> str:
    """Return the command that makes the whole run again."""
    return " ".join((*_assignments(origin.environment), "pytest", *map(shell_word, origin.arguments)))


def parameter_name(case_id: str) -> str:
    """Return how pytest writes the id at the end of a test's name: in brackets, and in ASCII."""
    return f"[{case_id.encode('unicode_escape').decode('ascii')}]"


def selecting_expression(name: str) -> str:
    """Return an expression for pytest's ``-k`` that holds for a test whose name ends with `name`.

    ``-k`` looks for words within names, and its words are letters, digits and ``:+-.[]\\/``. A name of those alone is
    one word and, with its brackets, found nowhere else; of any other name all its words are asked for.
    """
    return " and ".join(word for word in _WORDS.findall(name) if word not in _RESERVED)


def is_unclaimed(judgement: Judgement) -> bool:
    """Whether this was recorded and no case claims it, so that no test measures it."""
    return judgement.outcome is Outcome.INVALID and judgement.reason.startswith(_UNCLAIMED)


def shell_word(text: str) -> str:
    """Quote a word for a shell; what cannot be seen is written out, for which it takes bash, zsh or ksh."""
    if is_visible(text):
        return shlex.quote(text)
    return f"$'{''.join(map(_escaped, text))}'"


def _escaped(character: str) -> str:
    if character in ("\\", "'"):
        return f"\\{character}"
    if is_visible(character):
        return character
    return "".join(f"\\x{byte:02x}" for byte in character.encode("utf-8", "surrogatepass"))


def _assignments(environment: Mapping[str, str]) -> Iterator[str]:
    """Set variables in front of a command; through ``env`` where a shell would not take a name."""
    if all(_PLAIN_NAME.fullmatch(name) for name in environment):
        yield from (f"{name}={shell_word(value)}" for name, value in environment.items())
    else:
        yield from ("env", *(shell_word(f"{name}={value}") for name, value in environment.items()))


def _is_suites(judgement: Judgement) -> bool:
    """Whether a test of the suite's own has the case; of counts, `perf.count` has those that name no metric."""
    counts_own = judgement.kind == COUNTED and judgement.case_id.rpartition("/")[2] not in METRICS
    return judgement.kind in SUITE_KINDS and not counts_own


def _reproduction(judgement: Judgement, base: str, names: Sequence[str]) -> Reproduction:
    if not _is_suites(judgement):
        return Reproduction(command=base, note="Its test is not the suite's own: this makes the whole run again.")
    if is_unclaimed(judgement):
        return Reproduction(command=base, note="No test belongs to it: this makes the whole run again.")
    name = parameter_name(judgement.case_id)
    expression = selecting_expression(name)
    n_found = sum(name.lower() in other for other in names)  # -k reads names in lower case
    note = "" if expression == name and n_found == 1 else _NOT_ALONE
    return Reproduction(command=f"{base} -k {shell_word(expression)}", note=note)


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
    left_out = set(map(own_name, left_out))
    joined = _joined(origin.arguments or ("--device=...",))
    kept = [each for each in joined if own_name(each.partition("=")[0]) not in left_out]
    base = run_command(replace(origin, arguments=tuple(kept)))
    given = (f"{name}={shell_word(value)}" for name, value in changed.items() if value is not None)
    return " ".join([base, *named, *map(shell_word, selection), *given])


def option_value(origin: RunOrigin, name: str) -> str | None:
    """Return what an option of the run was given, None where it was not."""
    given = (word.partition("=") for word in _joined(origin.arguments))
    return next((value for option, _, value in given if own_name(option) == own_name(name)), None)


def _choice(cases: Sequence[Judgement]) -> list[str]:
    if not 0 < len(cases) <= MOST_NAMED or not all(map(_is_suites, cases)):
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

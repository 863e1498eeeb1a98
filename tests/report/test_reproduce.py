"""Commands that measure a case again."""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Sequence
from dataclasses import replace

import pytest
from _pytest.mark import KeywordMatcher
from _pytest.mark.expression import Expression

from perfsuite.plugin.parameters import CASE_KINDS
from perfsuite.records.outcome import Judgement, Outcome, told_judgement
from perfsuite.records.run_origin import NO_ORIGIN, RunOrigin
from perfsuite.report.reproduce import (
    MOST_NAMED,
    SUITE_KINDS,
    command_again,
    parameter_name,
    reproductions,
    run_command,
    selecting_expression,
    shell_word,
)
from perfsuite.testing.run_files import HOSTILE_NAMES, synthetic_run

from ..synthetic_judgements import case

ORIGIN = RunOrigin(
    arguments=("--device=host", "--model", "a b.gguf", "--perf-strict", "--against=old"),
    environment={"LLAMA_CPP_LIB_PATH": "/opt/my lib"},
)
PHASES = [case(f"phase/a-q8_0/siso/{name}") for name in ("decode", "prefill", "end_to_end")]


def test_a_run_is_made_again_with_its_arguments() -> None:
    """Environment and arguments are those of the run, quoted for a shell; dots stand for what is not known."""
    words = shlex.split(command_again(ORIGIN))
    assert words == [
        "LLAMA_CPP_LIB_PATH=/opt/my lib",
        "pytest",
        "--device=host",
        "--model=a b.gguf",
        "--perf-strict",
        "--against=old",
    ]
    assert command_again(NO_ORIGIN) == "pytest --device=..."
    origin = RunOrigin(arguments=("--device=host", "--model=a b"))
    odd = replace(origin, environment={"A B": "1"})
    assert run_command(odd) == "env 'A B=1' pytest --device=host '--model=a b'"


def test_cases_are_chosen_by_their_ids_and_options_changed() -> None:
    """Few cases are words of -k; too many, or one without a test, are the whole run; None leaves an option out."""
    (*_, option, expression) = shlex.split(command_again(ORIGIN, PHASES[:2]))
    assert (option, expression) == ("-k", "[phase/a-q8_0/siso/decode] or [phase/a-q8_0/siso/prefill]")
    assert len(PHASES) > MOST_NAMED
    assert " -k " not in command_again(ORIGIN, PHASES)
    assert " -k " not in command_again(ORIGIN, [case("mine/x")])
    words = shlex.split(command_again(ORIGIN, (), {"--model": "c d", "--against": None}))
    assert words[2:] == ["--device=host", "--perf-strict", "--model=c d"]


def test_the_choice_of_cases_is_repeated() -> None:
    """Quoted for a shell; cases that are named take its place, and a test the place of its whole file."""
    words = ("-k", "phase and not 'x'", "-m", "not slow", "--deselect=t/a.py::b")
    origin = replace(ORIGIN, selection=words)
    assert shlex.split(command_again(origin))[-5:] == list(words)
    assert shlex.split(command_again(origin, PHASES)) == shlex.split(command_again(origin))
    named = shlex.split(command_again(origin, PHASES[:1]))
    assert named == [*shlex.split(command_again(ORIGIN)), "-k", "[phase/a-q8_0/siso/decode]"]
    tests = replace(NO_ORIGIN, arguments=("--device=host", "t/a.py", "t/b.py"), selection=("t/a.py::one[x y]",))
    assert shlex.split(command_again(tests)) == ["pytest", "--device=host", "t/b.py", "t/a.py::one[x y]"]
    assert shlex.split(command_again(tests, PHASES[:1]))[1:4] == ["--device=host", "t/a.py", "t/b.py"]


ORDINARY = ("phase/a-q8_0/siso/decode", "operator/a/siso/decode/ffn_up", "operator/a/siso/decode/ffn_up-2", "x/[y]")
IDS = (*ORDINARY, *HOSTILE_NAMES, "not/a and b", "or", "été/Ω")

SOURCE = """
import pytest

IDS = {ids!r}

@pytest.mark.parametrize("case", IDS, ids=IDS)
def test_phase(case):
    pass
"""


def phase(case_id: str, kind: str = "phase", outcome: Outcome = Outcome.PASS, reason: str = "") -> Judgement:
    return told_judgement(case_id, kind, outcome, reason)


def selected(items: Sequence[pytest.Item], expression: str) -> list[str]:
    compiled = Expression.compile(expression)
    chosen = [item for item in items if compiled.evaluate(KeywordMatcher.from_item(item))]
    return [item.callspec.params["case"] for item in chosen if isinstance(item, pytest.Function)]


def test_pytest_chooses_the_case_by_its_command(pytester: pytest.Pytester) -> None:
    """Whatever a name holds, ``-k`` takes the expression and finds the case; others only where the note warns."""
    items = pytester.getitems(SOURCE.format(ids=IDS))
    run = replace(synthetic_run(n_cases=8), judgements=tuple(map(phase, IDS)))
    for case_id, found in zip(IDS, reproductions(run), strict=True):
        assert found.command is not None
        expression = shlex.split(found.command)[-1]
        chosen = selected(items, expression)
        assert case_id in chosen
        assert len(chosen) == 1 or found.note.startswith("Other cases may be measured as well")


@pytest.mark.parametrize("case_id", ORDINARY)
def test_an_ordinary_case_is_chosen_alone(pytester: pytest.Pytester, case_id: str) -> None:
    items = pytester.getitems(SOURCE.format(ids=IDS))
    run = replace(synthetic_run(n_cases=8), judgements=tuple(map(phase, IDS)))
    assert selected(items, selecting_expression(parameter_name(case_id))) == [case_id]
    assert reproductions(run)[IDS.index(case_id)].note == ""


def test_the_kinds_are_those_that_have_tests() -> None:
    """What ``-k`` is offered for is what the suite's own tests have as their parameter."""
    assert set(CASE_KINDS.values()) == SUITE_KINDS


@pytest.mark.parametrize("text", [*HOSTILE_NAMES, "it's", "a\u202e'b\\", "\x7f"])
def test_a_shell_reads_the_word_that_was_meant(text: str) -> None:
    """bash gives back exactly the argument, and nothing in it that cannot be seen."""
    word = shell_word(text)
    assert word.isprintable() or "\u200d" in word
    told = subprocess.run(["bash", "-c", f"printf %s {word}"], capture_output=True, check=True, timeout=20)
    assert told.stdout == text.encode()


def test_what_cannot_be_chosen_takes_the_whole_run_and_a_run_without_arguments_no_command() -> None:
    """A third party's case and what no case claims have the run's command; none is made up where it was not kept."""
    run = replace(synthetic_run(n_cases=8), origin=NO_ORIGIN)
    assert {each.command for each in reproductions(run)} == {None}
    assert "did not keep its arguments" in reproductions(run)[0].note
    unclaimed = phase("operator/a/b/c", "operator", Outcome.INVALID, "recorded, and no case claims it: unknown")
    run = replace(synthetic_run(n_cases=8), judgements=(phase("mine/x", "mine"), unclaimed))
    for found in reproductions(run):
        assert found.command == run_command(run.origin)
        assert found.note.endswith("makes the whole run again.")

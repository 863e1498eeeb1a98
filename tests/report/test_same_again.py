"""Commands that measure again."""

from __future__ import annotations

import shlex
from dataclasses import replace

from perfsuite.records.run_origin import NO_ORIGIN, RunOrigin
from perfsuite.report.same_again import MOST_NAMED, command_again, option_value

from ..synthetic_judgements import case

ORIGIN = RunOrigin(
    arguments=("--device=host", "--model", "a b.gguf", "--perf-strict", "--against=old"),
    environment={"LLAMA_CPP_LIB_PATH": "/opt/my lib"},
)
PHASES = [case(f"phase/a-q8_0/siso/{name}") for name in ("decode", "prefill", "end_to_end")]


def test_a_run_is_made_again_with_its_arguments() -> None:
    """Environment and arguments are those of the run, each word quoted for a shell."""
    words = shlex.split(command_again(ORIGIN))
    assert words == [
        "LLAMA_CPP_LIB_PATH=/opt/my lib",
        "pytest",
        "--device=host",
        "--model=a b.gguf",
        "--perf-strict",
        "--against=old",
    ]


def test_cases_are_chosen_by_their_ids() -> None:
    """Each case is one word of -k, in the brackets in which pytest writes it."""
    (*_, option, expression) = shlex.split(command_again(ORIGIN, PHASES[:2]))
    assert (option, expression) == ("-k", "[phase/a-q8_0/siso/decode] or [phase/a-q8_0/siso/prefill]")


def test_many_cases_are_not_named() -> None:
    """Where there are too many, or one has no test of the suite's own, the whole run is made again."""
    assert len(PHASES) > MOST_NAMED
    assert " -k " not in command_again(ORIGIN, PHASES)
    assert " -k " not in command_again(ORIGIN, [case("mine/x")])


def test_options_are_changed_and_left_out() -> None:
    """What is asked for takes the place of what the run was given; None leaves it out."""
    words = shlex.split(command_again(ORIGIN, (), {"--model": "c d", "--against": None}))
    assert words[2:] == ["--device=host", "--perf-strict", "--model=c d"]


def test_a_run_of_unknown_arguments_says_so() -> None:
    """Dots stand where the device would."""
    assert command_again(NO_ORIGIN) == "pytest --device=..."


def test_what_an_option_was_given_is_found() -> None:
    """Written as one word or as two."""
    assert [option_value(ORIGIN, f"--{name}") for name in ("device", "model", "threads")] == ["host", "a b.gguf", None]


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

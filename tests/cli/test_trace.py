"""``perfsuite trace``: whom to follow, and what is said of a wrong choice."""

from __future__ import annotations

import pytest

from perfsuite.cli import main

from .conftest import Refused, Streams


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "nobody to follow; expected -- COMMAND, --pid N or --model NAME"),
        (["--"], "nobody to follow"),
        (["--pid", "1", "--model", "smollm2-135m-q8_0"], "--pid and --model; expected one of them"),
        (["--pid", "1", "--", "ls"], "--pid and a command; expected one of them"),
        (["--pid", "-4"], "--pid=-4: expected the number of a process"),
        (["--recorder", "callback", "--", "ls"], "--recorder=callback: is of the suite's own runs; expected --model"),
        (["--output", "", "--", "ls"], "--output=: is empty"),
        (["--trace-floor", "0", "--", "ls"], "--trace-floor=0: expected more than 0"),
        (["--duration", "nan", "--pid", "1"], "--duration=nan: expected more than 0"),
        (["--top", "0", "--", "ls"], "--top=0: expected 1 or more"),
        (["--threads", "0", "--model", "smollm2-135m-q8_0"], "--threads=0: expected 1 or more"),
        (["--trace", "operators", "--", "ls"], "--trace=operators: 'operators' is no level; there are token, graph"),
    ],
)
def test_what_cannot_be_followed_is_one_line(arguments: list[str], message: str, refused: Refused) -> None:
    """Each mistake is told by the option's name before anything runs."""
    assert message in refused(["trace", *arguments])


def test_help_names_every_way(capsys: Streams) -> None:
    """The usage lists programs, processes, runs of the suite's own, and the words that are none."""
    with pytest.raises(SystemExit):
        main(["trace", "--help"])
    told = " ".join(capsys.readouterr().out.split())
    for way in (
        "-- COMMAND",
        "--pid N",
        "--model NAME",
        "--opencl",
        "view graph|timeline|statistics",
        "install-helper",
    ):
        assert way in told
    assert "after the program's own output" in told


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--trace", "operator", "--recorder", "callback"], "--trace: nothing would be done with it; expected the rec"),
        (["--trace-floor", "5"], "--trace-floor: nothing would be done with it; expected --trace beside it"),
        (["--buffer", "perf"], "--buffer: nothing"),
        (
            ["--trace", "operator", "--counters", "cycles"],
            "--counters: nothing would be done with it; expected --trace=c",
        ),
        (["--duration", "3"], "--duration: nothing would be done with it; expected --pid beside it"),
        (["--ggml-include", "/usr/include"], "--ggml-include: nothing"),
        (
            ["--opencl-platform", "Intel"],
            "--opencl-platform: nothing would be done with it; expected --recorder=opencl",
        ),
    ],
)
def test_options_that_nothing_would_be_done_with_are_refused(
    arguments: list[str], message: str, refused: Refused
) -> None:
    """Whoever asks for something and would not get it is told what it takes."""
    assert message in refused(["trace", "--model", "smollm2-135m-q8_0", *arguments])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--memory-limit", "900M", "--pid", "1"], "--memory-limit: nothing would be done with it; expected --model"),
        (["--duration", "3", "--", "ls"], "--duration: nothing"),
        (["--ggml-include", "/nowhere", "--", "ls"], "--ggml-include=/nowhere: is no folder; expected that of ggml.h"),
    ],
)
def test_a_program_has_options_of_its_own(arguments: list[str], message: str, refused: Refused) -> None:
    """What is of the suite's own runs, or needs a folder that is not there, is told before the program runs."""
    assert message in refused(["trace", *arguments])

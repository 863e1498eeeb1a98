"""The last screen of a run."""

from __future__ import annotations

import pytest

from perfsuite.records.attribution import Attribution, UniformShift
from perfsuite.records.outcome import Outcome
from perfsuite.records.run_origin import RunOrigin
from perfsuite.report.terminal import next_step

from ..synthetic_judgements import case, tree


def test_nothing_to_tell_is_a_line() -> None:
    """Without cases the closing line says so."""
    assert next_step([], "run.json") == ("perfsuite: nothing was measured; run.json",)


def test_the_verdict_comes_first_then_the_counts() -> None:
    """The first line is the run's verdict, the second counts every outcome, the gravest first, and names the files."""
    outcomes = [Outcome.PASS, Outcome.NEW, Outcome.PASS, Outcome.SLOW]
    found = [case(f"phase/a/b/{at}", outcome) for at, outcome in enumerate(outcomes)]
    first, second, *_ = next_step(found, "r/run.json", report_path="r/report.html")
    assert first.startswith("perfsuite: 1 case is slower than the forecast allows")
    assert second == "  1 slow, 1 new, 2 pass; r/run.json, r/report.html"
    assert next_step(found, "r/run.json")[1] == "  1 slow, 1 new, 2 pass; r/run.json"


@pytest.mark.parametrize("outcome", [Outcome.REGRESSED, Outcome.SLOW, Outcome.IMPOSSIBLE])
def test_every_failure_is_named_with_its_reason(outcome: Outcome) -> None:
    """What failed has a line of its own."""
    lines = next_step([case("phase/a/b/decode", outcome, reason="because")], "run.json")
    assert f"  {outcome.value}: phase/a/b/decode: because" in lines


@pytest.mark.parametrize(("ratio", "word"), [(1.12, "12.0 % slower"), (0.9, "10.0 % faster")])
def test_a_shift_of_everything_is_the_first_line(ratio: float, word: str) -> None:
    """It stands in the place of all lists of carriers."""
    outcome = Outcome.REGRESSED if ratio > 1 else Outcome.IMPROVED
    found = [case("phase/a/b/decode", outcome)]
    shift = UniformShift(ratio=ratio, n_cases=40)
    phases = (tree("operator/a/b/decode/ffn_up", losses_ns=(300_000,)),)
    _, _, first, *others = next_step(found, "run.json", Attribution(phases=phases, uniform_shift=shift))
    assert first.startswith(f"  everything is {word} (40 cases): a difference of frequency, memory, threads or build")
    assert not any("ffn_up" in line for line in others)


def test_a_shift_that_nothing_confirms_is_not_told() -> None:
    """Where no case changed for sure, neither did everything."""
    attribution = Attribution(uniform_shift=UniformShift(ratio=1.1, n_cases=40))
    lines = next_step([case("phase/a/b/decode", Outcome.INCONCLUSIVE)], "run.json", attribution)
    assert "everything" not in " ".join(lines)


def test_reasons_that_many_cases_share_are_told_once() -> None:
    """Cases that were not decided are summed up by their reason; one case is no cases."""
    found = [case(f"phase/a/b/{at}", Outcome.INVALID, reason="busy") for at in range(7)]
    assert "  invalid (7 cases): busy" in next_step(found, "run.json")
    assert "  invalid (1 case): busy" in next_step(found[:1], "run.json")


def test_a_run_that_passed_leaves_nothing_to_do() -> None:
    """The last line says so, for who looks for one."""
    assert next_step([case("phase/a/b/decode")], "run.json") == (
        "perfsuite: the only case passed",
        "  1 pass; run.json",
        "  nothing is left to do",
    )


def test_the_commands_are_those_of_the_run() -> None:
    """What is advised has the run's own arguments."""
    origin = RunOrigin(arguments=("--device=board", "--model=x.gguf"))
    *_, line = next_step([case("phase/a/b/decode", Outcome.NEW)], "run.json", origin=origin)
    assert line == "     pytest --device=board --model=x.gguf --baseline=record"


def test_a_run_that_was_broken_off_says_so() -> None:
    """The verdict is about what was measured until then."""
    assert "interrupted" in next_step([case("phase/a/b/decode")], "run.json", is_interrupted=True)[0]


def test_a_name_steers_no_terminal() -> None:
    """An escape sequence in a name or a reason is written out on every line."""
    found = [case("mine/\x1b[31mred/x", outcome, reason="\x1b[2J\u202e") for outcome in Outcome]
    lines = next_step(found, "run.json", origin=RunOrigin(arguments=("--model=\x1b[1m",)))
    assert all(line.isprintable() for line in lines)


def test_the_tree_of_a_faster_phase_is_not_told() -> None:
    """The lines of carriers are about what failed."""
    faster = case("phase/a/b/decode", Outcome.IMPROVED)
    phases = (tree("operator/a/b/decode/ffn_up", losses_ns=(300_000,)),)
    assert "ffn_up +" not in " ".join(next_step([faster], "run.json", Attribution(phases=phases)))


def test_a_path_steers_no_terminal() -> None:
    """Neither does a folder of an odd name, and the command that names it is one for a shell."""
    lines = next_step([case("phase/a/b/x", Outcome.IMPROVED)], "r \x1b[1m/run.json", report_path="\x1b/report.html")
    assert all(line.isprintable() for line in lines)
    assert "approve $'r \\x1b[1m/run.json'" in lines[-1]


def test_a_run_that_was_not_written_is_told() -> None:
    """In the place of its file, and nobody is told that nothing is left to do."""
    assert next_step([], None) == ("perfsuite: nothing was measured; run.json was not written",)
    lines = next_step([case("phase/a/b/decode", Outcome.IMPROVED)], None)
    assert lines[1:] == ("  1 improved; run.json was not written",)

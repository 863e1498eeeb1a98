"""The last screen of a run."""

from __future__ import annotations

from dataclasses import replace

import pytest

from perfsuite.records.attribution import NO_ATTRIBUTION, Attribution, UniformShift
from perfsuite.records.outcome import Outcome
from perfsuite.records.run_origin import RunOrigin
from perfsuite.report.terminal import MAX_LINES, failure_lines, next_step

from ..synthetic_judgements import case, tree


def test_a_slower_phase_is_a_tree() -> None:
    """Below the phase stand its carriers and what they leave over; the carriers need no line of their own."""
    ids = ["operator/a/b/decode/ffn_swiglu", "operator/a/b/decode/attn_out"]
    found = [
        *(case(case_id, Outcome.REGRESSED) for case_id in ids),
        case("phase/a/b/decode", Outcome.REGRESSED, reason="because"),
    ]
    lines = failure_lines(found, Attribution(phases=(tree(*ids, losses_ns=(310_000, 50_000)),)))
    assert lines == (
        "  regressed: phase/a/b/decode: because",
        "      ffn_swiglu +310 µs (78 %), attn_out +50.0 µs (12 %), unexplained +40.0 µs (10 %)",
    )


def test_carriers_that_are_not_sure_are_told_as_such() -> None:
    """Operators that only together make up most of a loss are not told as if they had regressed."""
    phases = (tree("operator/a/b/decode/ffn_up", losses_ns=(300_000,), is_significant=False),)
    slow = case("phase/a/b/decode", Outcome.REGRESSED)
    *_, line = failure_lines([slow], Attribution(phases=phases))
    assert line == "      none changed for sure by itself; mostly ffn_up +300 µs (75 %), unexplained +100 µs (25 %)"


def test_a_loss_without_carriers_is_told_as_such() -> None:
    """Where a loss is spread over many, that is what the tree says."""
    slow = case("phase/a/b/decode", Outcome.REGRESSED)
    *_, line = failure_lines([slow], Attribution(phases=(tree(losses_ns=()),)))
    assert line == "      no few operators carry it, unexplained +400 µs (100 %)"


def test_a_phase_that_lost_nothing_has_no_share() -> None:
    """Where the ends of a phase are equal, what is unexplained is told without a share of it."""
    same = replace(tree(losses_ns=()), lost_ns=0, unexplained_ns=0)
    *_, line = failure_lines([case("phase/a/b/decode", Outcome.REGRESSED)], Attribution(phases=(same,)))
    assert line.startswith("      no few operators carry it, unexplained ")
    assert "%" not in line


def test_phases_come_before_the_other_failures() -> None:
    """Phases are read first, then what measures wrongly, then what lost the most time."""
    found = [
        case("operator/a/b/decode/small", Outcome.REGRESSED, measured_ns=110, change_ratio=1.1),
        case("operator/a/b/decode/large", Outcome.REGRESSED, measured_ns=1100, change_ratio=1.1),
        case("kernel/add/n8/f32", Outcome.IMPOSSIBLE),
        case("phase/a/b/decode", Outcome.SLOW),
    ]
    lines = failure_lines(found, NO_ATTRIBUTION)
    assert [line.split(":")[1].split("/")[-1] for line in lines] == ["decode", "f32", "large", "small"]


def test_no_more_failures_are_told_than_are_read() -> None:
    """After fifteen lines the others are counted."""
    found = [case(f"kernel/add/n{at}/f32", Outcome.REGRESSED) for at in range(MAX_LINES + 12)]
    lines = failure_lines(found, NO_ATTRIBUTION)
    assert len(lines) == MAX_LINES + 1
    assert lines[-1] == "  ... and 12 more, in run.json"
    assert len(failure_lines(found[:MAX_LINES], NO_ATTRIBUTION)) == MAX_LINES


def test_a_tree_is_not_cut_from_its_phase() -> None:
    """A phase whose tree has no room is counted with the others."""
    phases = [case(f"phase/a/b{at}/decode", Outcome.REGRESSED) for at in range(8)]
    trees = tuple(replace(tree(losses_ns=()), case_id=each.case_id) for each in phases)
    lines = failure_lines(phases, Attribution(phases=trees))
    assert len(lines) == 15
    assert lines[-1] == "  ... and 1 more, in run.json"


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

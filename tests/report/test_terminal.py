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
    """Below it stand its carriers, sure or not, and what they leave over; what got faster has no tree."""
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
    phases = (tree("operator/a/b/decode/ffn_up", losses_ns=(300_000,), is_significant=False),)
    slow = case("phase/a/b/decode", Outcome.REGRESSED)
    *_, line = failure_lines([slow], Attribution(phases=phases))
    assert line == "      none changed for sure by itself; mostly ffn_up +300 µs (75 %), unexplained +100 µs (25 %)"
    *_, line = failure_lines([slow], Attribution(phases=(tree(losses_ns=()),)))
    assert line == "      no few operators carry it, unexplained +400 µs (100 %)"
    same = replace(tree(losses_ns=()), lost_ns=0, unexplained_ns=0)
    *_, line = failure_lines([case("phase/a/b/decode", Outcome.REGRESSED)], Attribution(phases=(same,)))
    assert line.startswith("      no few operators carry it, unexplained ")
    assert "%" not in line
    faster = case("phase/a/b/decode", Outcome.IMPROVED)
    phases = (tree("operator/a/b/decode/ffn_up", losses_ns=(300_000,)),)
    assert "ffn_up +" not in " ".join(next_step([faster], "run.json", Attribution(phases=phases)))


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
    """After fifteen lines the others are counted; a phase whose tree has no room is counted with them."""
    found = [case(f"kernel/add/n{at}/f32", Outcome.REGRESSED) for at in range(MAX_LINES + 12)]
    lines = failure_lines(found, NO_ATTRIBUTION)
    assert len(lines) == MAX_LINES + 1
    assert lines[-1] == "  ... and 12 more, in run.json"
    assert len(failure_lines(found[:MAX_LINES], NO_ATTRIBUTION)) == MAX_LINES
    phases = [case(f"phase/a/b{at}/decode", Outcome.REGRESSED) for at in range(8)]
    trees = tuple(replace(tree(losses_ns=()), case_id=each.case_id) for each in phases)
    lines = failure_lines(phases, Attribution(phases=trees))
    assert len(lines) == 15
    assert lines[-1] == "  ... and 1 more, in run.json"


def test_the_verdict_comes_first_then_the_counts() -> None:
    """The second line counts every outcome, the gravest first, and names the files; an interruption is said."""
    outcomes = [Outcome.PASS, Outcome.NEW, Outcome.PASS, Outcome.SLOW]
    found = [case(f"phase/a/b/{at}", outcome) for at, outcome in enumerate(outcomes)]
    first, second, *_ = next_step(found, "r/run.json", report_path="r/report.html")
    assert first.startswith("perfsuite: 1 case is slower than the forecast allows")
    assert second == "  1 slow, 1 new, 2 pass; r/run.json, r/report.html"
    assert next_step(found, "r/run.json")[1] == "  1 slow, 1 new, 2 pass; r/run.json"
    assert next_step([], "run.json") == ("perfsuite: nothing was measured; run.json",)
    assert next_step([case("phase/a/b/decode")], "run.json") == (
        "perfsuite: the only case passed",
        "  1 pass; run.json",
        "  nothing is left to do",
    )
    assert "interrupted" in next_step([case("phase/a/b/decode")], "run.json", is_interrupted=True)[0]


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


def test_what_is_not_sure_is_summed_up() -> None:
    """A shift that no case confirms is not told; cases that were not decided are told once by their reason."""
    attribution = Attribution(uniform_shift=UniformShift(ratio=1.1, n_cases=40))
    lines = next_step([case("phase/a/b/decode", Outcome.INCONCLUSIVE)], "run.json", attribution)
    assert "everything" not in " ".join(lines)
    found = [case(f"phase/a/b/{at}", Outcome.INVALID, reason="busy") for at in range(7)]
    assert "  invalid (7 cases): busy" in next_step(found, "run.json")
    assert "  invalid (1 case): busy" in next_step(found[:1], "run.json")


def test_the_commands_are_those_of_the_run() -> None:
    """What is advised has the run's own arguments."""
    origin = RunOrigin(arguments=("--device=board", "--model=x.gguf"))
    *_, line = next_step([case("phase/a/b/decode", Outcome.NEW)], "run.json", origin=origin)
    assert line == "     pytest --device=board --model=x.gguf --baseline=record"
    assert next_step([], None) == ("perfsuite: nothing was measured; run.json was not written",)
    lines = next_step([case("phase/a/b/decode", Outcome.IMPROVED)], None)
    assert lines[1:] == ("  1 improved; run.json was not written",)


def test_neither_a_name_nor_a_path_steers_the_terminal() -> None:
    """An escape sequence is written out on every line, and the command that names a path is one for a shell."""
    found = [case("mine/\x1b[31mred/x", outcome, reason="\x1b[2J\u202e") for outcome in Outcome]
    lines = next_step(found, "run.json", origin=RunOrigin(arguments=("--model=\x1b[1m",)))
    assert all(line.isprintable() for line in lines)
    lines = next_step([case("phase/a/b/x", Outcome.IMPROVED)], "r \x1b[1m/run.json", report_path="\x1b/report.html")
    assert all(line.isprintable() for line in lines)
    assert "approve $'r \\x1b[1m/run.json'" in lines[-1]

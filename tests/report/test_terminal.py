"""The last screen of a run."""

from __future__ import annotations

from pathlib import Path

import pytest

from perfsuite.records.outcome import NO_ATTRIBUTION, Attribution, Judgement, Outcome, UniformShift
from perfsuite.records.run_file import read_run_file, run_path
from perfsuite.records.run_origin import RunOrigin
from perfsuite.report.summary_table import MAX_ROWS, summary_text
from perfsuite.report.terminal import MAX_LINES, failure_lines, next_step
from perfsuite.testing.run_files import HOSTILE_NAMES

from ..synthetic_judgements import case, tree

_RUNS = Path(__file__).resolve().parents[2] / "docs" / "examples" / "runs"


def lines_of(
    *judgements: Judgement, is_color: bool = False, width: int | None = 120, shows_all: bool = False
) -> list[str]:
    return summary_text(judgements, width=width, is_color=is_color, shows_all=shows_all).splitlines()


@pytest.mark.parametrize("width", [1, 60, 80, 110])
def test_a_narrow_terminal_folds_names_alone(width: int) -> None:
    """Figures and outcomes never, and no line is too long."""
    name = "bmm_kqv/heads32-kvheads8-tokens1-positions1024-head64/f16"
    lines = lines_of(case(f"kernel/{name}", Outcome.INCONCLUSIVE), case("kernel/add/n8/f32"), width=width)
    assert all(len(line) <= max(width, 60) for line in lines)
    pieces = "".join(line.split()[0] for line in lines[2:])
    assert name in pieces
    assert any("5.00 ms" in line and line.endswith("inconclusive") for line in lines)


@pytest.mark.parametrize("name", ["before", "after", "slower"])
def test_a_run_fits_80_columns(name: str) -> None:
    """Each case of it is still there by its whole name, with its outcome beside it."""
    judgements = read_run_file(run_path(_RUNS / name)).judgements
    lines = lines_of(*judgements, width=80, shows_all=True)
    assert max(map(len, lines)) <= 80
    told = [line.split()[0] for line in lines if line.split()[-1] in {outcome.value for outcome in Outcome}]
    assert [each for each in judgements if not any(each.case_id.endswith(f"/{last}") for last in told)] == []


@pytest.mark.parametrize("name", HOSTILE_NAMES)
def test_a_name_steers_no_terminal(name: str) -> None:
    text = summary_text([case(f"mine/x/{name}"), case("mine/y/z")], width=None, is_color=False)
    assert not set(text) & set(map(chr, [*range(10), *range(11, 32), *range(0x80, 0xA0), 0x202E, 0x202B, 0x200B]))
    assert "[bold red]rich[/]" not in name or name in text


def many(outcome: Outcome, n: int, kind: str = "operator") -> list[Judgement]:
    return [case(f"{kind}/a/b/decode/{outcome.value}{at}", outcome) for at in range(n)]


def test_many_cases_are_counted_in_a_line() -> None:
    """Those that somebody must look at are shown with all phases, what failed first; with -v each case has its row."""
    found = [case("phase/a/b/decode"), *many(Outcome.PASS, 70), *many(Outcome.SLOW, 2), *many(Outcome.NEW, 3)]
    lines = lines_of(*found)
    assert sum("slow" in line for line in lines) == 2
    assert sum("decode" in line.split() for line in lines) == 1
    assert lines[-1] == "and 3 new, 70 pass (-v shows them)"
    lines = lines_of(*many(Outcome.INCONCLUSIVE, 100), *many(Outcome.REGRESSED, 5))
    assert sum(line.endswith(("inconclusive", "regressed")) for line in lines) == MAX_ROWS
    assert sum(line.endswith("regressed") for line in lines) == 5
    assert lines[-1] == f"and {105 - MAX_ROWS} inconclusive (-v shows them)"
    assert sum(line.endswith("pass") for line in lines_of(*many(Outcome.PASS, 100), shows_all=True)) == 100


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
    """After fifteen lines the others are counted."""
    found = [case(f"kernel/add/n{at}/f32", Outcome.REGRESSED) for at in range(MAX_LINES + 12)]
    lines = failure_lines(found, NO_ATTRIBUTION)
    assert len(lines) == MAX_LINES + 1
    assert lines[-1] == "  ... and 12 more, in run.json"


@pytest.mark.parametrize(("ratio", "word"), [(1.12, "12.0 % slower"), (0.9, "10.0 % faster")])
def test_a_shift_of_everything_is_the_first_line(ratio: float, word: str) -> None:
    outcome = Outcome.REGRESSED if ratio > 1 else Outcome.IMPROVED
    found = [case("phase/a/b/decode", outcome)]
    shift = UniformShift(ratio=ratio, n_cases=40)
    phases = (tree("operator/a/b/decode/ffn_up", losses_ns=(300_000,)),)
    _, _, first, *others = next_step(found, "run.json", Attribution(phases=phases, uniform_shift=shift))
    assert first.startswith(f"  everything is {word} (40 cases): a difference of frequency, memory, threads or build")
    assert not any("ffn_up" in line for line in others)


def test_a_run_of_nothing_or_of_passes_alone_leaves_nothing_to_do() -> None:
    """An interruption is said, and so is a file that was not written."""
    assert next_step([], "run.json") == ("perfsuite: nothing was measured; run.json",)
    assert next_step([], None) == ("perfsuite: nothing was measured; run.json was not written",)
    assert next_step([case("phase/a/b/decode")], "run.json") == (
        "perfsuite: the only case passed",
        "  1 pass; run.json",
        "  nothing is left to do",
    )
    assert "interrupted" in next_step([case("phase/a/b/decode")], "run.json", is_interrupted=True)[0]
    lines = next_step([case("phase/a/b/decode", Outcome.IMPROVED)], None)
    assert lines[1:] == ("  1 improved; run.json was not written",)


def test_what_is_not_sure_is_summed_up() -> None:
    """A shift that no case confirms is not reported; cases that were not decided are reported once by their reason."""
    attribution = Attribution(uniform_shift=UniformShift(ratio=1.1, n_cases=40))
    lines = next_step([case("phase/a/b/decode", Outcome.INCONCLUSIVE)], "run.json", attribution)
    assert "everything" not in " ".join(lines)
    found = [case(f"phase/a/b/{at}", Outcome.INVALID, reason="busy") for at in range(7)]
    assert "  invalid (7 cases): busy" in next_step(found, "run.json")
    assert "  invalid (1 case): busy" in next_step(found[:1], "run.json")


def test_neither_a_name_nor_a_path_steers_the_terminal() -> None:
    """An escape sequence is written out on every line, and the command that names a path is one for a shell."""
    found = [case("mine/\x1b[31mred/x", outcome, reason="\x1b[2J\u202e") for outcome in Outcome]
    lines = next_step(found, "run.json", origin=RunOrigin(arguments=("--model=\x1b[1m",)))
    assert all(line.isprintable() for line in lines)
    lines = next_step([case("phase/a/b/x", Outcome.IMPROVED)], "r \x1b[1m/run.json", report_path="\x1b/report.html")
    assert all(line.isprintable() for line in lines)
    assert "approve $'r \\x1b[1m/run.json'" in lines[-1]

"""The summary on the terminal."""

from __future__ import annotations

from dataclasses import replace

import pytest

from perfsuite.records.attribution import Attribution, Carrier, PhaseAttribution, UniformShift
from perfsuite.records.judgement import Judgement
from perfsuite.records.outcome import Outcome
from perfsuite.report.failures import MAX_LINES
from perfsuite.report.terminal import next_step, summary_text

PASSED = Judgement(
    case_id="phase/a-q8_0/siso/decode",
    kind="phase",
    samples_ns=(5_000_000,) * 3,
    measured_ns=5_000_000,
    floor_ns=1,
    expected_ns=4_000_000,
    limit_ns=None,
    baseline_ns=4_900_000,
    change_ratio=1.02,
    outcome=Outcome.PASS,
    reason="within the margin",
)


def case(case_id: str, outcome: Outcome = Outcome.PASS, **changes: object) -> Judgement:
    """A judgement of another case, its kind the first part of the id."""
    return replace(PASSED, case_id=case_id, kind=case_id.split("/")[0], outcome=outcome, **changes)  # type: ignore[arg-type]


def tree(*ids: str, losses_ns: tuple[int, ...], is_significant: bool = True) -> PhaseAttribution:
    """A decode that lost 400 µs to these operators, and to nobody knows what."""
    carriers = tuple(
        Carrier(
            case_id=case_id,
            role=case_id.rpartition("/")[2],
            lost_ns=lost_ns,
            share_ratio=lost_ns / 400_000,
            is_significant=is_significant,
        )
        for case_id, lost_ns in zip(ids, losses_ns, strict=True)
    )
    return PhaseAttribution(
        case_id="phase/a/b/decode", lost_ns=400_000, carriers=carriers, unexplained_ns=400_000 - sum(losses_ns)
    )


def lines_of(*judgements: Judgement, is_color: bool = False, width: int = 120) -> list[str]:
    """Render a summary and split it."""
    return summary_text(judgements, width=width, is_color=is_color).splitlines()


def test_a_row_has_every_figure() -> None:
    """A case is a row of what was measured, expected and stored, the change and the outcome."""
    (row,) = [line for line in lines_of(PASSED) if "decode" in line]
    assert row.split() == ["decode", "5.00", "ms", "4.00", "ms", "4.90", "ms", "+2.0", "%", "pass"]


def test_what_was_not_measured_is_a_dash() -> None:
    """A figure that is not there is a dash and never a 0."""
    bare = replace(PASSED, measured_ns=None, expected_ns=None, baseline_ns=None, change_ratio=None)
    (row,) = [line for line in lines_of(replace(bare, outcome=Outcome.INVALID)) if "decode" in line]
    assert row.split() == ["decode", "-", "-", "-", "-", "invalid"]


def test_kinds_have_tables_in_their_order() -> None:
    """Phases come first, then operators, then kernels, then what a third party calls its own."""
    ids = ("mine/x/y", "kernel/add/n8/f32", "operator/a/b/decode/ffn_up", "phase/a/b/decode")
    text = "\n".join(lines_of(*(case(case_id) for case_id in ids)))
    places = [text.index(title) for title in ("Phases", "Operators", "Kernels", "Mine")]
    assert places == sorted(places)


def test_what_all_ids_share_is_said_once() -> None:
    """The parts that the ids of a table share are its title; each row keeps what tells it from the others."""
    ids = ("operator/a-q8_0/siso/decode/ffn_up", "operator/a-q8_0/siso/prefill/ffn_up")
    lines = lines_of(*(case(case_id) for case_id in ids))
    assert sum("a-q8_0/siso" in line for line in lines) == 1
    assert [line.split()[0] for line in lines if "ffn_up" in line] == ["decode/ffn_up", "prefill/ffn_up"]


@pytest.mark.parametrize("width", [1, 40, 200])
def test_a_narrow_terminal_loses_nothing(width: int) -> None:
    """However narrow the terminal, names and figures are whole."""
    name = "kernel/bmm_kqv/heads32-kvheads8-tokens1-positions1024-head64/f16"
    text = "\n".join(lines_of(case(name), case("kernel/add/n8/f32"), width=width))
    assert name.removeprefix("kernel/") in text
    assert "4.90 ms" in text


def test_color_is_used_only_where_it_is_wanted() -> None:
    """Escape sequences are there on a terminal, and nowhere else."""
    assert "\x1b[" in summary_text([PASSED], width=120, is_color=True)
    assert "\x1b[" not in summary_text([PASSED], width=120, is_color=False)


def test_nothing_to_tell_is_nothing() -> None:
    """Without cases there is no table, and the closing line says so."""
    assert summary_text([], width=120, is_color=False) == ""
    assert next_step([], "run.json") == ("perfsuite: nothing was measured; run.json",)


def test_outcomes_are_counted_in_their_order() -> None:
    """The closing line counts every outcome that occurred, the gravest first, and names the file."""
    outcomes = [Outcome.PASS, Outcome.NEW, Outcome.PASS, Outcome.SLOW]
    first, *_ = next_step((case(f"phase/a/b/{at}", outcome) for at, outcome in enumerate(outcomes)), "runs/1/run.json")
    assert first == "perfsuite: 1 slow, 1 new, 2 pass; runs/1/run.json"


@pytest.mark.parametrize("outcome", [Outcome.REGRESSED, Outcome.SLOW, Outcome.IMPOSSIBLE])
def test_every_failure_is_named_with_its_reason(outcome: Outcome) -> None:
    """What failed has a line of its own."""
    lines = next_step([case("phase/a/b/decode", outcome, reason="because")], "run.json")
    assert f"  {outcome.value}: phase/a/b/decode: because" in lines


def test_a_slower_phase_is_a_tree() -> None:
    """Below the phase stand its carriers and what they leave over; the carriers need no line of their own."""
    ids = ["operator/a/b/decode/ffn_swiglu", "operator/a/b/decode/attn_out"]
    found = [
        *(case(case_id, Outcome.REGRESSED) for case_id in ids),
        case("phase/a/b/decode", Outcome.REGRESSED, reason="because"),
    ]
    _, *lines = next_step(found, "run.json", Attribution(phases=(tree(*ids, losses_ns=(310_000, 50_000)),)))
    assert lines == [
        "  regressed: phase/a/b/decode: because",
        "      ffn_swiglu +310 µs (78 %), attn_out +50.0 µs (12 %), unexplained +40.0 µs (10 %)",
    ]


def test_carriers_that_are_not_sure_are_told_as_such() -> None:
    """Operators that only together make up most of a loss are not told as if they had regressed."""
    phases = (tree("operator/a/b/decode/ffn_up", losses_ns=(300_000,), is_significant=False),)
    slow = case("phase/a/b/decode", Outcome.REGRESSED)
    *_, line = next_step([slow], "run.json", Attribution(phases=phases))
    assert line == "      none changed for sure by itself; mostly ffn_up +300 µs (75 %), unexplained +100 µs (25 %)"


def test_a_loss_without_carriers_is_told_as_such() -> None:
    """Where a loss is spread over many, that is what the tree says."""
    slow = case("phase/a/b/decode", Outcome.REGRESSED)
    *_, line = next_step([slow], "run.json", Attribution(phases=(tree(losses_ns=()),)))
    assert line == "      no few operators carry it, unexplained +400 µs (100 %)"


def test_the_tree_of_a_faster_phase_is_not_told() -> None:
    """The lines are about what failed."""
    faster = case("phase/a/b/decode", Outcome.IMPROVED)
    phases = (tree("operator/a/b/decode/ffn_up", losses_ns=(300_000,)),)
    assert len(next_step([faster], "run.json", Attribution(phases=phases))) == 1


def test_phases_come_before_the_other_failures() -> None:
    """Phases are read first, then what measures wrongly, then what lost the most time."""
    found = [
        case("operator/a/b/decode/small", Outcome.REGRESSED, measured_ns=110, change_ratio=1.1),
        case("operator/a/b/decode/large", Outcome.REGRESSED, measured_ns=1100, change_ratio=1.1),
        case("kernel/add/n8/f32", Outcome.IMPOSSIBLE),
        case("phase/a/b/decode", Outcome.SLOW),
    ]
    _, *lines = next_step(found, "run.json")
    assert [line.split(":")[1].split("/")[-1] for line in lines] == ["decode", "f32", "large", "small"]


def test_no_more_failures_are_told_than_are_read() -> None:
    """After fifteen lines the others are counted."""
    found = [case(f"kernel/add/n{at}/f32", Outcome.REGRESSED) for at in range(MAX_LINES + 12)]
    _, *lines = next_step(found, "run.json")
    assert len(lines) == MAX_LINES + 1
    assert lines[-1] == "  ... and 12 more, in run.json"
    assert "more" not in next_step(found[:MAX_LINES], "run.json")[-1]


def test_a_tree_is_not_cut_from_its_phase() -> None:
    """A phase whose tree has no room is counted with the others."""
    phases = [case(f"phase/a/b{at}/decode", Outcome.REGRESSED) for at in range(8)]
    trees = tuple(replace(tree(losses_ns=()), case_id=each.case_id) for each in phases)
    _, *lines = next_step(phases, "run.json", Attribution(phases=trees))
    assert len(lines) == 15
    assert lines[-1] == "  ... and 1 more, in run.json"


@pytest.mark.parametrize(("ratio", "word"), [(1.12, "12.0 % slower"), (0.9, "10.0 % faster")])
def test_a_shift_of_everything_is_the_first_line(ratio: float, word: str) -> None:
    """It stands in the place of all lists of carriers."""
    outcome = Outcome.REGRESSED if ratio > 1 else Outcome.IMPROVED
    found = [case("phase/a/b/decode", outcome)]
    shift = UniformShift(ratio=ratio, n_cases=40)
    phases = (tree("operator/a/b/decode/ffn_up", losses_ns=(300_000,)),)
    _, first, *others = next_step(found, "run.json", Attribution(phases=phases, uniform_shift=shift))
    assert first.startswith(f"  everything is {word} (40 cases): a difference of frequency, memory, threads or build")
    assert not any("ffn_up" in line for line in others)


def test_a_shift_that_nothing_confirms_is_not_told() -> None:
    """Where no case changed for sure, neither did everything."""
    attribution = Attribution(uniform_shift=UniformShift(ratio=1.1, n_cases=40))
    assert len(next_step([case("phase/a/b/decode", Outcome.INCONCLUSIVE)], "run.json", attribution)) == 1


def test_reasons_that_many_cases_share_are_told_once() -> None:
    """Cases that were not decided are summed up by their reason."""
    found = [case(f"phase/a/b/{at}", Outcome.INVALID, reason="busy") for at in range(7)]
    assert "  invalid (7 cases): busy" in next_step(found, "run.json")


def test_new_cases_say_how_to_be_kept() -> None:
    """Where nothing failed, new cases are told with how to record them; where something did, they are not."""
    new = case("phase/a/b/decode", Outcome.NEW)
    assert any("--baseline=record" in line for line in next_step([new], "run.json"))
    slow = case("phase/a/b/prefill", Outcome.SLOW)
    assert not any("--baseline=record" in line for line in next_step([new, slow], "run.json"))

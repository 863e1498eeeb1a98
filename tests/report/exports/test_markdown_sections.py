"""The tables of a run."""

from __future__ import annotations

from dataclasses import replace

from perfsuite.records.attribution import Attribution, UniformShift
from perfsuite.records.outcome import Outcome
from perfsuite.records.run_origin import NO_ORIGIN
from perfsuite.report.exports.markdown_sections import sections
from perfsuite.report.run_file import RunFile
from perfsuite.testing.run_files import synthetic_run

RUN = synthetic_run()


def _rows(run: RunFile, words: str) -> tuple[tuple[str, ...], ...]:
    return next(section.rows for section in sections(run) if section.title.endswith(words))


def test_every_case_is_in_one_table() -> None:
    """Titles count all cases of the run, each once."""
    counts = [int(section.title.split()[0]) for section in sections(RUN) if section.title[0].isdigit()]
    assert sum(counts) == len(RUN.judgements)


def test_what_fails_comes_first_and_is_not_folded() -> None:
    """The first table is of the failing cases, phases first, and the only one that is open."""
    first, *others = sections(RUN)
    assert not first.is_folded
    assert all(section.is_folded for section in others)
    assert [row[1] for row in first.rows].count("regressed") == 5
    assert first.rows[0][0] == "`phase/smollm2-135m-q8_0/siso/decode`"


def test_a_phase_names_its_carriers_with_what_they_lost() -> None:
    """The last cell of a regressed phase has the role, the time and the share; of what is too slow, the reason."""
    decode, *_ = _rows(RUN, "failed")
    (tree,) = (tree for tree in RUN.attribution.phases if tree.case_id.endswith("/decode"))
    assert decode[-1].startswith(f"`{tree.carriers[0].role}` +")
    assert decode[-1].endswith(f"({tree.carriers[0].share_ratio * 100:.0f} %)")
    slow = next(each for each in RUN.judgements if each.outcome is Outcome.SLOW)
    assert any(row[1] == "slow" and row[-1] == f"`{slow.reason}`" for row in _rows(RUN, "failed"))


def test_a_uniform_shift_names_no_carrier() -> None:
    """Where everything moved alike, no operator is blamed."""
    shifted = replace(RUN, attribution=Attribution(uniform_shift=UniformShift(ratio=1.1, n_cases=9)))
    assert {row[-1] for row in _rows(shifted, "failed") if row[1] == "regressed"} == {"everything moved alike"}


def test_shared_reasons_are_counted() -> None:
    """Cases that were not judged are told by reason, and their counts sum up."""
    unjudged = [each for each in RUN.judgements if each.outcome in (Outcome.INVALID, Outcome.INCOMPARABLE)]
    rows = _rows(RUN, "not judged")
    assert sum(int(row[1]) for row in rows) == len(unjudged)
    assert len(rows) == len({(each.outcome, each.reason) for each in unjudged})


def test_the_command_is_there_to_be_copied() -> None:
    """The machine's table ends with what makes the run again, where the run knows it."""
    rows = {row[0]: row[1] for row in _rows(RUN, "Machine and command")}
    assert rows["again"].startswith("`LLAMA_CPP_LIB_PATH=/opt/llama/lib pytest --device=host ")
    assert "again" not in {row[0] for row in _rows(replace(RUN, origin=NO_ORIGIN), "Machine and command")}


def test_a_long_command_is_not_cut() -> None:
    """The command is whole, however long it is: half of one would do something else."""
    arguments = (*RUN.origin.arguments, *(f"--perf-only=case-{at}" for at in range(60)), "--last")
    rows = dict(_rows(replace(RUN, origin=replace(RUN.origin, arguments=arguments)), "Machine and command"))
    assert rows["again"].endswith("--perf-only=case-59 --last`")


def test_the_energy_of_a_token_stands_with_the_machine() -> None:
    """Each phase that has one is a row."""
    run = replace(RUN, joules_per_token={"prefill": None, "decode": 0.8213})
    rows = {row[0]: row[1] for row in _rows(run, "Machine and command")}
    assert {name: value for name, value in rows.items() if "energy" in name} == {
        "energy of a token, `decode`": "0.821 J"
    }


def test_a_run_of_nothing_has_its_machine_alone() -> None:
    """Tables without rows are left out."""
    assert [section.title for section in sections(replace(RUN, judgements=()))] == ["Machine and command"]

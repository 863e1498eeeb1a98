"""The comment for a pull request."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import given, settings

from perfsuite.records.attribution import Attribution, UniformShift
from perfsuite.records.outcome import Outcome
from perfsuite.records.run_origin import NO_ORIGIN
from perfsuite.report.exports.markdown import (
    LIMIT_BYTES,
    LIMIT_CHARACTERS,
    MARKER,
    comment_text,
    page,
    sections,
    summary_text,
)
from perfsuite.report.run_file import RunFile
from perfsuite.testing.run_files import synthetic_run
from perfsuite.units import format_count

from .conftest import HARMLESS, WORDS, run_of
from .markdown_reader import rendered

PAGED_RUN = synthetic_run()
_LEFT_OUT = re.compile(r"Left out to save room: (\d+) row")


def _n_rows(text: str) -> int:
    """The rows of all tables without their headers and rules."""
    n_tables = text.count("| --- |")
    return sum(line.startswith("| ") for line in text.splitlines()) - 2 * n_tables


def test_the_verdict_is_the_first_line() -> None:
    """A mark, the sentence with its names as code, and where and when it was."""
    first, _, second, *_ = page([PAGED_RUN], limit=10**6).splitlines()
    assert first.startswith("❌ **perfsuite**: 5 cases regressed: `decode` is ")
    assert second.startswith("`smollm2-135m-q8_0/siso` on `host`, `llama: llama.cpp 0.5.0; kernels: AMD EPYC ")
    assert ", run from commit `" in second
    assert second.endswith("started `2026-03-01T02:00:00.000+00:00`.")


@pytest.mark.parametrize("limit", [13_200, 20_000, 40_000])
def test_a_limit_is_kept_and_what_was_left_out_is_counted(limit: int) -> None:
    """Shown rows and those that are reported as left out are all rows, and the failing ones are the last to go."""
    whole, cut = page([PAGED_RUN], limit=10**6), page([PAGED_RUN], limit=limit)
    left_out = _LEFT_OUT.search(cut)
    assert len(cut) <= limit
    assert left_out is not None
    assert _n_rows(cut) + int(left_out[1]) == _n_rows(whole)
    assert cut.count("| regressed |") == 5
    assert not _LEFT_OUT.search(whole)


def test_runs_for_which_there_is_no_room_are_counted() -> None:
    """Several runs share the limit; those that would have too little are reported by their number."""
    runs = [synthetic_run(seed=seed) for seed in range(7)]
    text = page(runs, limit=40_000)
    assert len(text) <= 40_000
    assert text.count("**perfsuite**") == 3
    assert f"Left out to save room: {format_count(4, 'run')}._" in text


@given(WORDS)
@settings(max_examples=40, deadline=None)
def test_words_of_a_run_change_nothing_but_code(words: str) -> None:
    """Whatever a run says: no tag, link, picture, mention or cell more than in a run with a harmless name."""
    hostile, harmless = (rendered(page([run_of(each)], limit=10**6)) for each in (words, HARMLESS))
    assert hostile.outside == harmless.outside
    assert len(hostile.inside) == len(harmless.inside)


RUN = synthetic_run()


def _rows(run: RunFile, words: str) -> tuple[tuple[str, ...], ...]:
    return next(section.rows for section in sections(run) if section.title.endswith(words))


def test_every_case_is_in_one_table_and_what_fails_comes_first() -> None:
    """The failing cases' table alone is open, phases first; tables without rows are left out."""
    counts = [int(section.title.split()[0]) for section in sections(RUN) if section.title[0].isdigit()]
    assert sum(counts) == len(RUN.judgements)
    first, *others = sections(RUN)
    assert not first.is_folded
    assert all(section.is_folded for section in others)
    assert [row[1] for row in first.rows].count("regressed") == 5
    assert first.rows[0][0] == "`phase/smollm2-135m-q8_0/siso/decode`"
    assert [section.title for section in sections(replace(RUN, judgements=()))] == ["Machine and command"]


def test_a_phase_names_its_carriers_with_what_they_lost() -> None:
    """The last cell has the role, the time and the share, or of what is too slow the reason; of a shift no operator."""
    decode, *_ = _rows(RUN, "failed")
    (tree,) = (tree for tree in RUN.attribution.phases if tree.case_id.endswith("/decode"))
    assert decode[-1].startswith(f"`{tree.carriers[0].role}` +")
    assert decode[-1].endswith(f"({tree.carriers[0].share_ratio * 100:.0f} %)")
    slow = next(each for each in RUN.judgements if each.outcome is Outcome.SLOW)
    assert any(row[1] == "slow" and row[-1] == f"`{slow.reason}`" for row in _rows(RUN, "failed"))
    shifted = replace(RUN, attribution=Attribution(uniform_shift=UniformShift(ratio=1.1, n_cases=9)))
    assert {row[-1] for row in _rows(shifted, "failed") if row[1] == "regressed"} == {"everything moved alike"}


def test_shared_reasons_are_counted() -> None:
    """Cases that were not judged are reported by reason, and their counts sum up."""
    unjudged = [each for each in RUN.judgements if each.outcome in (Outcome.INVALID, Outcome.INCOMPARABLE)]
    rows = _rows(RUN, "not judged")
    assert sum(int(row[1]) for row in rows) == len(unjudged)
    assert len(rows) == len({(each.outcome, each.reason) for each in unjudged})


def test_the_machine_has_the_command_and_the_energy() -> None:
    """The whole command is there to be copied, where the run knows it; each phase with an energy is a row."""
    rows = {row[0]: row[1] for row in _rows(RUN, "Machine and command")}
    assert rows["again"].startswith("`LLAMA_CPP_LIB_PATH=/opt/llama/lib pytest --device=host ")
    assert "again" not in {row[0] for row in _rows(replace(RUN, origin=NO_ORIGIN), "Machine and command")}
    arguments = (*RUN.origin.arguments, *(f"--perf-only=case-{at}" for at in range(60)), "--last")
    rows = dict(_rows(replace(RUN, origin=replace(RUN.origin, arguments=arguments)), "Machine and command"))
    assert rows["again"].endswith("--perf-only=case-59 --last`")
    run = replace(RUN, joules_per_token={"prefill": None, "decode": 0.8213})
    rows = {row[0]: row[1] for row in _rows(run, "Machine and command")}
    assert {name: value for name, value in rows.items() if "energy" in name} == {
        "energy of a token, `decode`": "0.821 J"
    }


#: As long as a shown name can get, and as wide: each sign takes several characters, or two units of UTF-16.
WIDEST = ["@`|" * 100 + str(number) for number in range(300)] + ["🧪" * 300]


def test_a_bot_finds_its_comment_and_a_reader_what_regressed() -> None:
    """The marker stands alone on the first line and is not shown; one table is open, and every fold is closed again."""
    text = comment_text([synthetic_run()])
    assert text.startswith(f"{MARKER}\n❌ **perfsuite**")
    assert text.count(MARKER) == 1
    assert "perfsuite: comment" not in "".join(rendered(text).outside)
    before, *_ = text.split("<details>")
    assert before.count("| regressed |") == 5
    assert text.count("<details>") == text.count("</details>") > 3


@pytest.mark.parametrize("n_runs", [1, 12])
def test_a_comment_is_never_longer_than_github_takes(n_runs: int) -> None:
    """A thousand cases with the widest names, in one run or in a dozen, stay below the limit in UTF-16, too."""
    runs = [synthetic_run(n_cases=1_000, seed=seed, names=WIDEST) for seed in range(n_runs)]
    text = comment_text(runs)
    assert len(text.encode("utf-16-le")) // 2 < LIMIT_CHARACTERS
    assert "Left out to save room" in text
    assert "**perfsuite**: 5 cases regressed" in text


def test_a_summary_has_all_cases() -> None:
    """There is room for every case of a usual run."""
    run = synthetic_run()
    text = summary_text([run])
    shown = [each for each in run.judgements if f"`{each.case_id}`" in text]
    assert "Left out" not in text
    assert len(shown) == sum(each.outcome.value not in ("invalid", "incomparable") for each in run.judgements)
    text = summary_text([synthetic_run(n_cases=1_000, seed=seed, names=WIDEST) for seed in range(12)])
    assert 500_000 < len(text.encode()) <= LIMIT_BYTES
    assert "Left out to save room" in text
    assert text.count("**perfsuite**") == 12

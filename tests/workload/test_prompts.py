"""Files of prompts and of their lengths."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from perfsuite.errors import PerfsuiteError
from perfsuite.workload.prompts import (
    LengthSource,
    prompt_lengths,
    prompts_scenario,
    prompts_text,
    read_lines,
    read_prompts,
)


@pytest.mark.parametrize(
    ("content", "number", "fields"),
    [
        ('\n{"text": "a"}\n', 2, {"text": "a"}),
        ('{"text": "a\u2028b"}\n', 1, {"text": "a\u2028b"}),
        ("\n 12 \n", 2, {"n_tokens": "12", "line": 2}),
        ("id,n_tokens\nx,12\n", 2, {"id": "x", "n_tokens": "12"}),
        ('id,n_tokens\n"a\nb",12\n', 3, {"id": "a\nb", "n_tokens": "12"}),
    ],
)
def test_the_first_line_tells_the_format(content: str, number: int, fields: dict[str, Any], tmp_path: Path) -> None:
    """JSON, a length a line, or CSV, whose records may go over lines; each knows where it stands.

    The line separator of Unicode stands unescaped in JSON and ends no line.
    """
    path = tmp_path / "p"
    path.write_text(content)
    (line,) = read_lines(path)
    assert (line.where, line.fields) == (f"{path}: line {number}", fields)


@pytest.mark.parametrize(
    ("field", "message"),
    [
        ("NaN", "has NaN or an infinity"),
        ("[-Infinity]", "has NaN or an infinity"),
        ("1e999", "has NaN or an infinity"),
        ('"\\ud800"', r"has '\\ud800', half a surrogate pair"),
        ('{"\\udc00": 1}', r"has '\\udc00', half a surrogate pair"),
        ("[" * 100_000 + "]" * 100_000, "is (not JSON|nested too deeply)"),
    ],
)
def test_json_that_cannot_be_written_is_refused(field: str, message: str, tmp_path: Path) -> None:
    """Wherever it is in a line; a pair of surrogates is a letter."""
    path = tmp_path / "p"
    path.write_text('{"n_tokens": 1, "text": "\\ud83d\\ude00"}\n{"n_tokens": 1, "extra": ' + field + "}\n")
    with pytest.raises(PerfsuiteError, match=f"line 2: {message}"):
        read_lines(path)


def written(folder: Path, content: str) -> Path:
    path = folder / "prompts.txt"
    path.write_text(content, encoding="utf-8")
    return path


def by_letters(texts: Sequence[str]) -> list[int]:
    return [len(text) for text in texts]


@pytest.mark.parametrize(
    "content",
    [
        "5\n7\n",
        " 5 \n\n7",
        "\ufeff5\r\n7\r\n",
        "name,n_tokens\na,5\nb,7\n",
        '{"n_tokens": 5}\n\n{"n_tokens": 7, "prompt": "ignored here"}\n',
        '{"tokens": [1, 2, 3, 4, 5]}\n{"tokens": [1, 2, 3, 4, 5, 6, 7], "n_tokens": 99}\n',
    ],
)
def test_each_format_gives_lengths(content: str, tmp_path: Path) -> None:
    path = written(tmp_path, content)
    assert prompt_lengths(path) == (5, 7)
    assert {prompt.length_source for prompt in read_prompts(path)} == {LengthSource.GIVEN}


@pytest.mark.parametrize("field", ["prompt", "text", "question"])
def test_a_text_is_estimated_by_its_words(field: str, tmp_path: Path) -> None:
    """Without a tokenizer three words are about four tokens, and the length says that it is an estimate."""
    (prompt,) = read_prompts(written(tmp_path, json.dumps({field: " what is\nthis "})))
    assert (prompt.n_tokens, prompt.length_source) == (4, LengthSource.ESTIMATED)


def test_a_tokenizer_counts_texts_in_one_go(tmp_path: Path) -> None:
    """Texts of all lines are counted at once; a length beside a text gives way, tokens and bare lengths do not."""
    asked: list[tuple[str, ...]] = []

    def count(texts: Sequence[str]) -> list[int]:
        asked.append(tuple(texts))
        return by_letters(texts)

    lines = '{"text": "abc"}\n{"n_tokens": 9}\n{"text": "ab", "n_tokens": 4}\n{"text": "abcd", "tokens": [7]}\n'
    prompts = read_prompts(written(tmp_path, lines), count)
    assert asked == [("abc", "ab")]
    assert [prompt.n_tokens for prompt in prompts] == [3, 9, 2, 1]
    counted, given = LengthSource.COUNTED, LengthSource.GIVEN
    assert [prompt.length_source for prompt in prompts] == [counted, given, counted, given]
    assert prompts[3].tokens == (7,)


def test_lines_are_written_as_they_were(tmp_path: Path) -> None:
    """All fields stay, letters beyond ASCII too; a counted length is added, an estimated one is not."""
    line = {"id": 3, "question": "wie groß?", "deep": {"a": [1, None]}}
    path = written(tmp_path, json.dumps(line))
    assert json.loads(prompts_text(read_prompts(path))) == line
    assert "groß" in prompts_text(read_prompts(path))
    assert json.loads(prompts_text(read_prompts(path, by_letters))) == {**line, "n_tokens": 9}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "is empty"),
        ("5\n0\n", "line 2: n_tokens is 0, expected a whole number of 1 to"),
        ("-5\n", "line 1: n_tokens is '-5'"),
        ("5\n" + "9" * 5000, "line 2: n_tokens is"),
        ("a,b\n1,2\n", "columns are a, b; expected n_tokens among them, JSON lines, or a"),
        ("n_tokens,b\n,2\n", "line 2: n_tokens is ''"),
        ("a,n_tokens\n1\n", "line 2: n_tokens is None"),
        ('{"text": "a"}\n{"text": \n', "line 2: is not JSON"),
        ('{"answer": "a"}', "line 1: fields are answer; expected one of prompt, text, question, n_tokens, tokens"),
        ('{"text": " "}', "line 1: the text is ' '"),
        ('{"n_tokens": 99999999999}', "line 1: n_tokens is 99999999999"),
        ('{"tokens": [1, -2]}', "line 1: tokens is '[1, -2]'"),
    ],
)
def test_what_is_no_prompt_is_refused_with_its_line(content: str, message: str, tmp_path: Path) -> None:
    path = written(tmp_path, content)
    with pytest.raises(PerfsuiteError) as caught:
        read_prompts(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("lengths", "median"), [((7,), 7), ((900, 40, 64), 64), ((40, 64, 900, 70), 64), ((5, 5, 5, 8), 5)]
)
def test_prompts_stand_under_their_median(lengths: tuple[int, ...], median: int) -> None:
    """The scenario has the length of a prompt that there is, and tells how many there are."""
    scenario = prompts_scenario(lengths, 24)
    assert (scenario.n_prompt, scenario.n_gen, scenario.n_depth) == (median, 24, 0)
    assert scenario.n_prompt in lengths
    assert scenario.name.startswith(f"prompts-{len(lengths)}-")
    assert scenario.name.endswith("-g24")


def test_other_prompts_have_another_name() -> None:
    """Another length, order, number, generation or depth is another scenario; the same is the same."""
    others = ((40, 900, 64), (40, 900, 65), (900, 40, 64), (40, 900, 64, 64))
    names = [prompts_scenario(each, 24).name for each in others]
    names += [prompts_scenario(others[0], 25).name, prompts_scenario(others[0], 24, n_depth=100).name]
    assert len(set(names)) == len(names)
    assert prompts_scenario(list(others[0]), 24).name == names[0]

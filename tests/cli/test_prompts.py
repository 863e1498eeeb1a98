"""``perfsuite prompts``."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from perfsuite.cli import main
from tests.command_streams import Refused, Streams


@pytest.fixture
def lengths(tmp_path: Path) -> Path:
    path = tmp_path / "lengths.txt"
    path.write_text("".join(f"{10 + at % 40}\n" for at in range(200)))
    return path


def test_a_subset_is_written_in_the_order_of_the_input(lengths: Path, tmp_path: Path) -> None:
    """As lines of JSON, each with its line in the file."""
    assert main(["prompts", str(lengths), "--keep", "20", "--output", str(tmp_path / "out" / "x.jsonl")]) == 0
    written = [json.loads(line) for line in (tmp_path / "out" / "x.jsonl").read_text().splitlines()]
    numbers = [each["line"] for each in written]
    assert len(numbers) == 20
    assert numbers == sorted(numbers)
    assert all(each["n_tokens"] == 10 + (each["line"] - 1) % 40 for each in written)


def test_people_read_a_table_and_the_divergence(lengths: Path, capsys: Streams) -> None:
    """Whole and subset, and what chance would have done; prompts of several files follow each other."""
    assert main(["prompts", str(lengths), "--keep", "10%", "--random", "50"]) == 0
    out = capsys.readouterr().out
    assert [line.split()[:2] for line in out.splitlines()[1:3]] == [["whole", "200"], ["subset", "20"]]
    assert "D(subset || whole) is 0.0" in out
    assert "50 random subsets: 5th percentile 0." in out
    assert "estimated" not in out
    assert main(["prompts", str(lengths), str(lengths), "--json"]) == 0
    plain = json.loads(capsys.readouterr().out)
    assert (plain["n_whole"], plain["n_kept"]) == (400, 40)


def test_programs_read_everything(lengths: Path, capsys: Streams) -> None:
    """Sizes, divergences, both histograms and which prompts were kept."""
    assert main(["prompts", str(lengths), "--keep", "50", "--random", "40", "--seed", "3", "--json"]) == 0
    plain = json.loads(capsys.readouterr().out)
    assert next(iter(plain.items())) == ("schema", 1)
    assert (plain["n_whole"], plain["n_kept"], plain["seed"], len(plain["indices"])) == (200, 50, 3, 50)
    assert plain["length_sources"] == {"given": 200}
    assert plain["kl_nats"] <= plain["random"]["p5_kl_nats"] <= plain["random"]["median_kl_nats"]
    assert sum(each["n_whole"] for each in plain["histogram"]) == 200
    assert sum(each["n_kept"] for each in plain["histogram"]) == 50
    assert (plain["whole"]["n_tokens"], plain["whole"]["median_tokens"]) == (5900, 29.5)


def test_the_same_seed_chooses_the_same(lengths: Path, capsys: Streams) -> None:
    """Run by run; another seed takes other prompts of the same lengths."""
    answers = []
    for seed in ("1", "1", "2"):
        assert main(["prompts", str(lengths), "--keep", "20", "--seed", seed, "--json"]) == 0
        answers.append(json.loads(capsys.readouterr().out))
    assert answers[0] == answers[1]
    assert answers[0]["indices"] != answers[2]["indices"]
    assert answers[0]["subset"] == answers[2]["subset"]


def test_an_estimate_is_called_one(tmp_path: Path, capsys: Streams) -> None:
    """Texts without a tokenizer say that their lengths are estimated; prompts of one length have one bin."""
    path = tmp_path / "x.jsonl"
    path.write_text('{"question": "how many words are these?"}\n{"question": "one"}\n')
    assert main(["prompts", str(path), "--keep", "100%"]) == 0
    assert "2 lengths estimated from words; --model counts tokens" in capsys.readouterr().out
    path = tmp_path / "x.txt"
    path.write_text("5\n5\n")
    assert main(["prompts", str(path), "--keep", "1"]) == 0
    assert "nats over 1 bin\n" in capsys.readouterr().out


def test_a_model_counts(tmp_path: Path, capsys: Streams, monkeypatch: pytest.MonkeyPatch) -> None:
    def count(path: Path, texts: Sequence[str]) -> list[int]:
        assert path == Path("v.gguf")
        return [len(text) for text in texts]

    monkeypatch.setattr("perfsuite.measure.token_counts.count_tokens", count)
    path, output = tmp_path / "x.jsonl", tmp_path / "y.jsonl"
    path.write_text('{"text": "abc", "id": 1}\n')
    assert main(["prompts", str(path), "--keep", "1", "--model", "v.gguf", "--output", str(output)]) == 0
    assert json.loads(output.read_text()) == {"text": "abc", "id": 1, "n_tokens": 3}
    assert "estimated" not in capsys.readouterr().out


def test_both_histograms_are_drawn(lengths: Path, tmp_path: Path, capsys: Streams) -> None:
    """With the finding as its title; beside JSON the file is told apart from it."""
    picture = tmp_path / "x.svg"
    assert main(["prompts", str(lengths), "--plot", str(picture), "--json"]) == 0
    out, err = capsys.readouterr()
    assert json.loads(out)["n_kept"] == 20
    assert err.startswith(f"{picture}: 20 of 200 prompts of lengths.txt diverge")
    assert "all 200" in picture.read_text()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--keep", "201"], "--keep=201: expected"),
        (["--keep", "101%"], "--keep=101%: expected"),
        (["--keep", "1", "--max-kl", "0.01"], "subset of 1 of 200 prompts: the best of this size diverges by"),
    ],
)
def test_a_mistake_is_one_line(arguments: list[str], message: str, lengths: Path, refused: Refused) -> None:
    assert message in refused(["prompts", str(lengths), *arguments])


@pytest.mark.parametrize("option", ["--output", "--plot"])
def test_what_is_read_is_not_written(option: str, tmp_path: Path, refused: Refused) -> None:
    """Neither by its own name nor by that of a link to it: the data set stays as it is."""
    path, link = tmp_path / "few.svg", tmp_path / "link.svg"
    path.write_text("5\n7\n")
    link.symlink_to(path)
    for read, written in ((path, path), (path, link), (link, path), (path, tmp_path / "x" / ".." / "few.svg")):
        message = refused(["prompts", str(read), "--keep", "1", "--max-kl", "9", option, str(written)])
        assert f"{option}={written}: is read or written already; expected a file of its own" in message
    assert path.read_text() == "5\n7\n"
    assert link.is_symlink()

"""lm-Meter's published accuracies for people and for programs."""

from __future__ import annotations

import argparse
import json

from perfsuite.experiments.fidelity.command_published import run_published
from tests.command_streams import Streams


def test_people_read_what_is_outside(capsys: Streams) -> None:
    """A table, how many rows rounding explains, a sentence for each that it does not, and the means."""
    assert run_published(argparse.Namespace(json=False)) == 0
    lines = capsys.readouterr().out.splitlines()
    (at,) = (number for number, line in enumerate(lines) if line.startswith("34 of 44 rows"))
    told = [line for line in lines[at + 1 :] if line.startswith("  ")]
    assert "  phases, gemma-2-2b-it, prefill: accuracy 99.99 %, the latencies give 99.9992 to 99.9992, as if" in told[3]
    assert any("softmax, chunk_lse: accuracy 95.53 %, the latencies give 95.7035 to 95.7724" in line for line in told)
    assert any("Google Pixel 7, softmax, chunk_lse: accuracy 99.39 % is not that of its" in line for line in told)
    assert lines[-3] == "in 48 of 60 rows the printed accuracy is that of the printed scaled error"
    assert lines[-2].endswith("mean of the printed rows 97.11 %, stated 96.82 %, outside rounding")


def test_programs_read_all_rows(capsys: Streams) -> None:
    """Each row has its interval and whether it is within; without latencies both are null."""
    assert run_published(argparse.Namespace(json=True)) == 0
    plain = json.loads(capsys.readouterr().out)
    assert next(iter(plain.items())) == ("schema", 1)
    assert plain["paper"] == "lm-Meter"
    assert [row["is_within"] for row in plain["rows"]].count(False) == 10
    last = plain["rows"][-1]
    assert (last["device"], last["is_within"], last["accuracy"]) == ("Google Pixel 7", None, None)
    first = plain["rows"][0]["accuracy"]
    assert first["least"] <= first["computed"] <= first["most"]
    assert [mean["is_within"] for mean in plain["means"]] == [False, True]

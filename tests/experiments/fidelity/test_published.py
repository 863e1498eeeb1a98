"""The file of lm-Meter's printed accuracies."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from perfsuite.errors import PerfsuiteError
from perfsuite.expectation.roofline.published import published_dir, published_rates
from perfsuite.experiments.fidelity.published import published_fidelity


def plain() -> dict[str, Any]:
    """Return the file as it is."""
    found: dict[str, Any] = json.loads((published_dir() / "fidelity" / "lm-meter.json").read_bytes())
    return found


def test_both_tables_are_held() -> None:
    """Seven phases of four architectures, and sixteen kernels of two phones, one of them without latencies."""
    rows = published_fidelity().rows
    phases = [row for row in rows if row.table == "phases"]
    assert len(phases) == 7 * len({row.subject for row in phases}) == 28
    seven, eight = ([row for row in rows if row.device == f"Google Pixel {name}"] for name in ("7", "8 Pro"))
    assert len(rows) == len(phases) + 2 * 16
    assert [row.name for row in seven] == [row.name for row in eight]
    assert {row.measured_ns is None for row in seven} == {True}


def test_latencies_are_in_the_steps_that_are_told() -> None:
    """All latencies are whole multiples of what the file says they are printed in, and not of ten times that."""
    published = published_fidelity()
    found = [ns for row in published.rows for ns in (row.measured_ns, row.ground_truth_ns) if ns is not None]
    assert len(found) == 2 * 44
    assert {ns % published.latency_resolution_ns for ns in found} == {0}
    assert {ns % (10 * published.latency_resolution_ns) for ns in found} != {0}


def test_the_phases_are_those_of_the_file_of_rates() -> None:
    """Ground truths of whole phases are the latencies that the devices' file holds."""
    truths = {row.ground_truth_ns for row in published_fidelity().rows if row.table == "phases"}
    rates = {each.latency_ns for each in published_rates() if each.paper == "lm-Meter" and each.table == "phases"}
    assert rates
    assert rates <= truths


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"schema": 2}, "schema is 2, expected 1"),
        ({"rows": None}, "rows is null, expected a list"),
        ({"rows": [{"table": "phases"}]}, "rows[0]: device is missing"),
        ({"latency_resolution_ns": 0}, "latency_resolution_ns is 0, expected a finite number above 0"),
        ({"rows": [{**plain()["rows"][0], "ground_truth_ns": None}]}, "rows[0]: embedding has one of measured_ns and"),
        (
            {"rows": [{**plain()["rows"][0], "measured_ns": 0}]},
            "rows[0].measured_ns is 0, expected a whole number of 1",
        ),
        ({"rows": [{**plain()["rows"][0], "accuracy_percent": "99"}]}, "rows[0].accuracy_percent is '99', expected a"),
    ],
)
def test_a_broken_file_is_one_line(change: dict[str, Any], message: str, tmp_path: Path) -> None:
    """The message names the file and what is wrong with it."""
    path = tmp_path / "x.json"
    path.write_text(json.dumps({**plain(), **change}), encoding="utf-8")
    with pytest.raises(PerfsuiteError) as caught:
        published_fidelity(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert message in str(caught.value)


def test_no_file_and_no_json_are_one_line(tmp_path: Path) -> None:
    """Both name the file."""
    (tmp_path / "x.json").write_text("{")
    for path in (tmp_path / "x.json", tmp_path / "y.json"):
        with pytest.raises(PerfsuiteError, match=f"{path.name}: (cannot be read|is not JSON)"):
            published_fidelity(path)

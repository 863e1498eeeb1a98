"""The schema of published devices, checked on reading."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from perfsuite.errors import PerfsuiteError
from perfsuite.expectation.roofline.published_file import CEILING_FIELDS, read_published

DEVICE: dict[str, Any] = {
    "name": "Board",
    "class": "board",
    **dict.fromkeys(CEILING_FIELDS),
    "measured_bandwidth_bytes_per_s": 4e9,
    "sources": {"measured_bandwidth_bytes_per_s": "Table 1"},
    "note": "",
}
RATE: dict[str, Any] = {
    "device": "Board",
    "architecture": "smollm2-135m",
    "quantization": "q8_0",
    "scenario": "siso",
    "phase": "decode",
    "tokens_per_s": 10.0,
    "latency_ns": None,
    "n_tokens": None,
    "table": "2",
    "is_suspect": False,
    "note": "",
}


def content(**changes: Any) -> dict[str, Any]:
    """Return a file with one device and one rate, and changes."""
    paper = {"name": "Paper", "title": "A paper", "arxiv": None, "tables": ["1"]}
    return {"schema": 1, "paper": paper, "notes": [], "devices": [DEVICE], "rates": [RATE], **changes}


@pytest.fixture
def refusal(tmp_path: Path) -> Callable[[object], str]:
    """Write a file and return why it is refused; the message names the file."""

    def read(plain: object) -> str:
        path = tmp_path / "paper.json"
        path.write_text(plain if isinstance(plain, str) else json.dumps(plain))
        with pytest.raises(PerfsuiteError) as caught:
            read_published(path)
        assert str(path) in str(caught.value)
        return str(caught.value)

    return read


def test_a_file_is_read(tmp_path: Path) -> None:
    """The paper's name, its devices and its rates come back as they are."""
    path = tmp_path / "paper.json"
    path.write_text(json.dumps(content()))
    found = read_published(path)
    assert (found.paper, found.devices, found.rates) == ("Paper", (DEVICE,), (RATE,))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"schema": 2}, "schema is 2, expected 1"),
        ({"extra": 1}, "field 'extra' is unknown; accepted are schema, paper, notes, devices, rates"),
        ({"notes": "none"}, "notes is 'none', expected a list"),
        ({"devices": {}}, "devices is an object, expected a list"),
        ({"devices": [DEVICE, DEVICE]}, "devices is ['Board', 'Board'], expected names that differ"),
        ({"devices": [3]}, "devices[0] is 3, expected an object"),
        ({"paper": {"name": "Paper"}}, "paper: title is missing"),
    ],
)
def test_a_wrong_file_is_named(refusal: Callable[[object], str], changes: dict[str, Any], message: str) -> None:
    """What is no file of this schema is refused by field, value and what is accepted."""
    assert message in refusal(content(**changes))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"name": ""}, "name is '', expected a text that is not empty"),
        (
            {"measured_bandwidth_bytes_per_s": 0},
            "measured_bandwidth_bytes_per_s is 0, expected a finite number above 0, or null",
        ),
        (
            {"theoretical_ops_per_s": "fast"},
            "theoretical_ops_per_s is 'fast', expected a finite number above 0, or null",
        ),
        ({"theoretical_ops_per_s": True}, "theoretical_ops_per_s is True, expected a finite number above 0, or null"),
        ({"sources": {}}, "sources is [], expected a source for each of measured_bandwidth_bytes_per_s"),
        ({"sources": {"measured_bandwidth_bytes_per_s": ""}}, "is '', expected a text that is not empty"),
        ({"measured_bandwidth_bytes_per_s": None}, "expected a source for each of no field"),
    ],
)
def test_a_wrong_device_is_named(refusal: Callable[[object], str], changes: dict[str, Any], message: str) -> None:
    """A ceiling that is no positive number or has no source is refused, and so is a source of nothing."""
    found = refusal(content(devices=[{**DEVICE, **changes}]))
    assert "devices[0]" in found
    assert message in found


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"device": "Bord"}, "device is 'Bord', expected one of Board"),
        ({"phase": "training"}, "phase is 'training', expected one of load, "),
        ({"tokens_per_s": None}, "tokens_per_s is None, expected either it or latency_ns"),
        ({"latency_ns": 5}, "tokens_per_s is 10.0, expected either it or latency_ns"),
        ({"latency_ns": 1.5}, "latency_ns is 1.5, expected a whole number of 1 or more, or null"),
        ({"tokens_per_s": -1.0}, "tokens_per_s is -1.0, expected a finite number above 0, or null"),
        ({"is_suspect": "no"}, "is_suspect is 'no', expected true or false"),
    ],
)
def test_a_wrong_rate_is_named(refusal: Callable[[object], str], changes: dict[str, Any], message: str) -> None:
    """A rate of an unknown device or phase, or without either number, is refused."""
    found = refusal(content(rates=[{**RATE, **changes}]))
    assert "rates[0]" in found
    assert message in found


def test_what_is_no_json_is_named(refusal: Callable[[object], str], tmp_path: Path) -> None:
    """A broken file and a missing one are one line with the path."""
    assert "is not JSON" in refusal("{")
    assert "is a list, expected an object" in refusal([])
    with pytest.raises(PerfsuiteError, match=r"none\.json: cannot be read"):
        read_published(tmp_path / "none.json")

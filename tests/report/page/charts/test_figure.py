"""Specifications as the page holds them."""

from __future__ import annotations

from typing import Any

from perfsuite.report.page.charts import Figure, specs_by_id
from perfsuite.report.page.charts.figure import packed


def unpacked(data: dict[str, Any]) -> list[dict[str, Any]]:
    """Records of packed data, as the script makes them."""
    named = [
        {field: data["words"][field][value] if field in data["words"] else value for field, value in pairs}
        for pairs in (zip(data["fields"], row, strict=True) for row in data["rows"])
    ]
    return [{field: value for field, value in each.items() if value is not None} for each in named]


def test_packed_data_can_be_read_back() -> None:
    """Each record comes back with the fields that it had; what is said often is said once."""
    records: list[dict[str, Any]] = [
        {"row": "ab"[place % 2], "time": place / 2, "tip": f"{place}"} for place in range(9)
    ]
    records[3]["told"] = "+3 %"
    data = packed({"layer": [{"data": {"values": records}, "mark": "bar"}]})["layer"][0]["data"]
    assert unpacked(data) == records
    assert data["words"] == {"row": ["a", "b"]}
    assert "values" not in data


def test_short_data_and_lists_of_numbers_stay() -> None:
    """Neither would be shorter; the divisions of an axis are no records."""
    spec = {"axis": {"values": list(range(20))}, "data": {"values": [{"x": 1}] * 7}}
    assert packed(spec) == spec


def test_a_specification_has_its_summary() -> None:
    """It is what is read out."""
    figure = Figure(figure_id="a", subject="runs", title="A", summary="All is well.", spec={"mark": "bar"})
    assert specs_by_id([figure]) == {"a": {"mark": "bar", "description": "All is well."}}

"""All figures of a run together."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from perfsuite.records.observation import NO_OBSERVATION, Observation
from perfsuite.report.page.charts import Figure, figures, specs_by_id
from perfsuite.report.page.charts.axes import UNSIGNED_ZERO
from perfsuite.report.page.charts.figure import packed
from perfsuite.testing.run_files import HOSTILE_NAMES, synthetic_observation, synthetic_run

from ..conftest import observed_run


def unpacked(data: dict[str, Any]) -> list[dict[str, Any]]:
    """Records of packed data, as the script makes them."""
    named = [
        {field: data["words"][field][value] if field in data["words"] else value for field, value in pairs}
        for pairs in (zip(data["fields"], row, strict=True) for row in data["rows"])
    ]
    return [{field: value for field, value in each.items() if value is not None} for each in named]


def test_packed_data_can_be_read_back() -> None:
    """What is said often is stated once; short data and lists of numbers stay, and the summary is what is read out."""
    records: list[dict[str, Any]] = [
        {"row": "ab"[place % 2], "time": place / 2, "tip": f"{place}"} for place in range(9)
    ]
    records[3]["told"] = "+3 %"
    data = packed({"layer": [{"data": {"values": records}, "mark": "bar"}]})["layer"][0]["data"]
    assert unpacked(data) == records
    assert data["words"] == {"row": ["a", "b"]}
    assert "values" not in data
    spec = {"axis": {"values": list(range(20))}, "data": {"values": [{"x": 1}] * 7}}
    assert packed(spec) == spec
    figure = Figure(figure_id="a", subject="runs", title="A", summary="All is well.", spec={"mark": "bar"})
    assert specs_by_id([figure]) == {"a": {"mark": "bar", "description": "All is well."}}


#: Keys of Vega-Lite under which there are expressions.
EXPRESSIONS = {"expr", "signal", "calculate", "filter", "transform", "test", "labelExpr", "params", "href", "url"}


def all_figures(*names: str) -> tuple[Figure, ...]:
    """The figures of a run in which everything is there, beside two others."""
    run = synthetic_run(n_cases=200, names=names)
    others = [synthetic_run(n_cases=200, seed=seed, started_at=f"2026-02-0{seed}T02:00:00+00:00") for seed in (1, 2)]
    shown = [observed_run(each) for each in others]
    return figures(run, hostile(synthetic_observation(run)) if names else synthetic_observation(run), shown)


def hostile(observation: Observation) -> Observation:
    """The same with hostile names of roles and groups."""
    roles = [node.role for node in observation.graphs[0].nodes]
    names = dict(zip(roles, HOSTILE_NAMES, strict=False))
    return replace(
        observation,
        graphs=tuple(
            replace(
                graph,
                nodes=tuple(replace(node, role=names[node.role], op=names[node.role]) for node in graph.nodes),
                edges=tuple(
                    replace(edge, source=names[edge.source], target=names[edge.target]) for edge in graph.edges
                ),
            )
            for graph in observation.graphs
        ),
        timelines=tuple(
            replace(each, operators=tuple(replace(span, role=names[span.role]) for span in each.operators))
            for each in observation.timelines
        ),
        states=tuple(replace(state, group=HOSTILE_NAMES[3]) for state in observation.states),
    )


def parts(spec: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every value of a specification with the keys that lead to it; the numbers of lists are left out."""
    yield path, spec
    if isinstance(spec, dict):
        for key, value in spec.items():
            yield from parts(value, (*path, key))
    if isinstance(spec, list):
        for value in spec:
            yield from parts(value, path)


def layers(spec: dict[str, Any]) -> Iterator[tuple[dict[str, Any], list[dict[str, Any]]]]:
    """The encoding and the rows of each layer, with what it takes from the whole."""
    for layer in spec.get("layer", [spec]):
        rows = layer.get("data", spec.get("data", {}))["values"]
        yield {**spec.get("encoding", {}), **layer.get("encoding", {})}, rows


def test_every_subject_is_shown_where_it_was_recorded() -> None:
    """No id is used twice, words are short enough to be read out, and numbers are those that JSON has."""
    found = all_figures()
    assert [each.figure_id for each in found] == list(dict.fromkeys(each.figure_id for each in found))
    assert list(dict.fromkeys(each.subject for each in found)) == [
        *("changes", "phases", "operators", "attribution", "kernels", "roofline"),
        *("timeline", "tokens", "graph", "machine", "runs"),
    ]
    empty = replace(synthetic_run(n_cases=0), sentinels_ns={})
    assert figures(empty, NO_OBSERVATION) == ()
    for figure in all_figures():
        assert 0 < len(figure.title) <= 60
        assert 40 <= len(figure.summary) <= 600, figure.summary
    found = all_figures()
    specs = json.loads(json.dumps(specs_by_id(found), allow_nan=False))
    assert [specs[each.figure_id]["description"] for each in found] == [each.summary for each in found]


@pytest.mark.parametrize("names", [(), HOSTILE_NAMES], ids=["usual", "hostile"])
def test_every_field_is_in_the_rows_that_it_is_of(names: tuple[str, ...]) -> None:
    """Each layer has rows, and each field that an encoding names is in one of them."""
    for figure in all_figures(*names):
        for encoding, rows in layers(figure.spec):
            fields = {each["field"] for each in encoding.values() if isinstance(each, dict) and "field" in each}
            assert rows, figure.figure_id
            assert fields <= set().union(*rows), figure.figure_id


def test_fields_are_fixed_words() -> None:
    """Hostile names change no field, key or expression; they are in rows, domains and longer names alone."""
    usual, strange = (
        {
            (path[-1], value if path[-1] in {"field", *EXPRESSIONS} else None)
            for figure in found
            for path, value in parts(figure.spec)
            if path and "values" not in path
        }
        for found in (all_figures(), all_figures(*HOSTILE_NAMES))
    )
    assert strange == usual
    assert {(key, value) for key, value in usual if key in EXPRESSIONS} == {("labelExpr", UNSIGNED_ZERO)}
    for figure in all_figures(*HOSTILE_NAMES):
        for path, value in parts(figure.spec):
            if isinstance(value, str) and "alert(1)" in value:
                assert path[-1] in ("domain", "wideNames") or "values" in path, (figure.figure_id, path)


def test_the_figures_of_a_large_run_stay_small() -> None:
    """Those of 500 cases take less than a tenth of the 3 MB that a page may have."""
    run = synthetic_run(n_cases=500)
    found = figures(run, synthetic_observation(run))
    assert len(json.dumps(specs_by_id(found), separators=(",", ":"))) < 300_000

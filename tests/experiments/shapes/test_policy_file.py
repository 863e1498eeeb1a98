"""Files of policies: the way there and back, and what hands can do to them."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from perfsuite.errors import PolicyError
from perfsuite.experiments.shapes.policy_file import policy_from_plain, policy_plain, read_policy, write_policy
from tests.synthetic_shape_policy import shape_policy


def test_a_policy_comes_back_from_its_file(tmp_path: Path) -> None:
    """What is read is what was written."""
    write_policy(shape_policy(), tmp_path / "policy.json")
    assert read_policy(tmp_path / "policy.json") == shape_policy()


def test_a_runtime_needs_only_ranges_and_choices(tmp_path: Path) -> None:
    """The lookup that the module documents, on plain JSON, says what `choose` says, within and beyond the rows."""
    write_policy(shape_policy(), tmp_path / "policy.json")
    plain = json.loads((tmp_path / "policy.json").read_text("utf-8"))["tables"][1]
    for n in (1, 20, 21, 512, 513):
        choice = plain["default"]
        for row in plain["rows"]:
            if row["least"] <= n <= row["most"]:
                choice = row["choice"]
        assert choice["subject"] == shape_policy().tables[1].choose({"n": n, "k": 512}).choice.subject


def _set(*path: str | int, to: Any) -> Callable[[Any], None]:
    def damage(plain: Any) -> None:
        for key in path[:-1]:
            plain = plain[key]
        plain[path[-1]] = to

    return damage


def _drop(*path: str | int) -> Callable[[Any], None]:
    def damage(plain: Any) -> None:
        for key in path[:-1]:
            plain = plain[key]
        del plain[path[-1]]

    return damage


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (_set("schema", to=2), "p.json: schema is 2, expected 1"),
        (_drop("schema"), "p.json: schema is missing"),
        (_set("n_threads", to=True), "p.json: n_threads is True, expected a whole number of 1 to 2147483647"),
        (_set("tables", to={}), "p.json: tables is an object, expected a list"),
        (_set("tables", 0, to=7), "p.json: tables[0] is 7, expected an object"),
        (
            _set("tables", 1, "decides", to="speed"),
            "p.json: tables[1].decides is 'speed', expected one of tiling, backend",
        ),
        (_drop("tables", 1, "worst"), "p.json: tables[1]: worst is missing"),
        (_set("tables", 1, "fixed", to={"k": 1.5}), "p.json: tables[1].fixed['k'] is 1.5, expected a whole number"),
        (_set("tables", 1, "measured_sizes", to=[1, "8"]), "p.json: tables[1].measured_sizes[1] is '8', expected"),
        (_set("tables", 1, "rows", 1, "least", to="x"), "p.json: tables[1].rows[1].least is 'x', expected a whole"),
        (_set("tables", 1, "rows", 1, "least", to=2**40), "p.json: tables[1].rows[1].least is 1099511627776"),
        (_set("tables", 1, "rows", 1, "least", to=30), "p.json: tables[1]: rows[1].least: is 30, expected 21"),
        (_set("tables", 1, "rows", 0, "most", to=4), "p.json: tables[1].rows[0]: a row from 1 to 4, measured"),
        (
            _set("tables", 1, "rows", 0, "gain_over_worst", "ratio", to=0),
            "p.json: tables[1].rows[0].gain_over_worst.ratio is 0, expected a finite number above 0",
        ),
        (
            _set("tables", 1, "rows", 0, "gain_over_worst", "ratio", to=float("nan")),
            "p.json: tables[1].rows[0].gain_over_worst.ratio is nan, expected a finite number above 0",
        ),
        (
            _set("tables", 1, "rows", 0, "gain_over_worst", "ratio", to=9.0),
            "p.json: tables[1].rows[0].gain_over_worst: a gain of 9 between",
        ),
        (_drop("tables", 0, "default", "tile"), "p.json: tables[0].default: tiled: expected a tile and a vector"),
        (_set("tables", 1, "default", "subject", to="npu"), "p.json: tables[1].default: subject is 'npu'"),
        (_set("subjects", 0, "fingerprint", to={"a": 1}), "p.json: subjects[0].fingerprint['a'] is 1, expected text"),
        (_set("subjects", to=[]), "p.json: tables[0]: chooses tiled, which is none of the subjects"),
    ],
)
def test_a_damaged_file_is_refused_by_the_place_of_the_damage(damage: Callable[[Any], None], message: str) -> None:
    """The error names the file, the field, what it is and what is expected, and names the file once."""
    plain = copy.deepcopy(policy_plain(shape_policy()))
    damage(plain)
    with pytest.raises(PolicyError) as refused:
        policy_from_plain(plain, "p.json")
    assert str(refused.value).startswith(message)
    assert str(refused.value).count("p.json") == 1
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("text", ["", "{", "[" * 100_000, "\x00"])
def test_what_is_no_json_is_refused(tmp_path: Path, text: str) -> None:
    """A file of something else is one line that says what is expected."""
    path = tmp_path / "policy.json"
    path.write_text(text)
    with pytest.raises(PolicyError, match=r"policy\.json: is not JSON \(.*expected a file of 'perfsuite"):
        read_policy(path)


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    """The path is named."""
    with pytest.raises(PolicyError, match=r"absent\.json: cannot be read \(No such file"):
        read_policy(tmp_path / "absent.json")


def test_an_array_is_no_policy() -> None:
    """The outermost value is an object."""
    with pytest.raises(PolicyError, match=r"^p\.json: is a list, expected an object; "):
        policy_from_plain([], "p.json")

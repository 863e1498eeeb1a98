"""The workflow files of a farm's night are what GitHub and GitLab take, and ask for what is there."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from perfsuite.cli.command_help import whole_parser
from perfsuite.nightly.night_plan import read_plan

from .docs_pages import ROOT, fences, page_name

FARM = ROOT / "docs/examples/farm"
HOW_TO = ROOT / "docs/how-to/run-it-nightly.md"

#: What check-jsonschema is asked for: the schemas that it ships, so that no network is needed.
GITHUB = ("--builtin-schema", "vendor.github-workflows")
GITLAB = ("--builtin-schema", "vendor.gitlab-ci", "--data-transform", "gitlab-ci")


def complaints(text: str, folder: Path, schema: tuple[str, ...]) -> str:
    """What the schema says of a file; "" where it takes it."""
    path = folder / "workflow.yml"
    path.write_text(text)
    command = [sys.executable, "-m", "check_jsonschema", *schema, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    return "" if done.returncode == 0 else done.stdout + done.stderr


def shown(name: str) -> str:
    return next(each.text for each in fences(HOW_TO.read_text("utf-8"), page_name(HOW_TO)) if each.file == name)


def workflows() -> dict[str, tuple[str, tuple[str, ...]]]:
    """By name: the text of each workflow, and its schema."""
    return {
        "farm on GitHub": ((FARM / "github.yml").read_text(), GITHUB),
        "farm on GitLab": ((FARM / "gitlab-ci.yml").read_text(), GITLAB),
        "page's on GitHub": (shown(".github/workflows/nightly.yml"), GITHUB),
        "page's on GitLab": (shown(".gitlab-ci.yml"), GITLAB),
    }


@pytest.mark.parametrize("name", workflows())
def test_a_workflow_is_what_its_service_takes(name: str, tmp_path: Path) -> None:
    """By the service's own schema, which refuses the same file with another limit of time."""
    text, schema = workflows()[name]
    assert complaints(text, tmp_path, schema) == ""
    wrong = re.sub(r"^( +)(?:timeout-minutes|timeout): .*$", r"\1timeout: []", text, flags=re.MULTILINE)
    assert complaints(wrong, tmp_path, schema)


def scripts(node: Any) -> Iterator[str]:
    """The shell lines of a workflow, wherever they stand."""
    if isinstance(node, dict):
        for key, value in node.items():
            if key in ("run", "script", "before_script", "after_script"):
                yield from ("\n".join([value] if isinstance(value, str) else value)).splitlines()
            else:
                yield from scripts(value)
    elif isinstance(node, list):
        for each in node:
            yield from scripts(each)


@pytest.mark.parametrize("name", ["github.yml", "gitlab-ci.yml"])
def test_a_farms_jobs_are_commands_of_the_suite(name: str) -> None:
    """Each parses, a job measures one board of the matrix, and the merge and the changes are of the plan's history."""
    tree = yaml.safe_load((FARM / name).read_text())
    lines = [line.partition(" || ")[0] for line in scripts(tree) if line.startswith(".venv/bin/perfsuite")]
    asked = [shlex.split(line)[1:] for line in lines]
    options = [whole_parser().parse_args(words) for words in asked]
    firsts = [" ".join(words[:2]) for words in asked]
    assert firsts == ["nightly nightly.toml", "history compact", "history changes"]
    assert options[0].board == ["$BOARD"]
    (history,) = {each.history for each in options[1:]}
    plan = read_plan(FARM / "nightly.toml")
    assert all(f"--perf-history={history}" in cell.arguments for cell in plan.cells)


def test_a_farms_matrix_has_the_boards_of_its_plan() -> None:
    boards = list(read_plan(FARM / "nightly.toml").at_once)
    github = yaml.safe_load((FARM / "github.yml").read_text())
    gitlab = yaml.safe_load((FARM / "gitlab-ci.yml").read_text())
    assert github["jobs"]["measure"]["strategy"]["matrix"]["board"] == boards
    assert gitlab["measure"]["parallel"]["matrix"] == [{"BOARD": boards}]

"""What compares a pull request in CI: the action's and the component's own steps, run here against made-up services."""

from __future__ import annotations

import json
import os
import re
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import pytest
import yaml
from markdown_it import MarkdownIt

from .docs_pages import ROOT

ACTION = ROOT / "action.yml"
COMPONENT = ROOT / "templates/compare.yml"
RUN = ROOT / "docs/examples/runs/slower"
COMMENT = ROOT / "tests/data/pull-request-comment.md"
MARKER = "<!-- perfsuite: comment -->"

#: Stands in for `perfsuite compare`, which would compile llama.cpp twice; what it exports is real.
STUB = """#!{python}
import json, os, shutil, sys
from pathlib import Path
words = sys.argv[1:]
if words[0] == "export":
    os.execv({python!r}, [{python!r}, "-m", "perfsuite.cli", *words])
Path("asked.json").write_text(json.dumps(words))
if "GITHUB_TOKEN" in os.environ or "PERFSUITE_GITLAB_TOKEN" in os.environ:
    sys.exit("what is compared has the token")
(folder,) = [each.partition("=")[2] for each in words if each.startswith("--perf-dir=")]
if {run!r}:
    shutil.copytree({run!r}, folder, copy_function=shutil.copy, dirs_exist_ok=True)
sys.exit({status})
"""


class Service(BaseHTTPRequestHandler):
    """GitHub's and GitLab's comments, as far as they are asked for."""

    comments: ClassVar[list[dict[str, Any]]]
    asked: ClassVar[list[str]]
    refusals: ClassVar[list[int]]

    def _body(self) -> str:
        return str(json.loads(self.rfile.read(int(self.headers["Content-Length"])))["body"])

    def _answer(self, what: object, code: int = 200) -> None:
        type(self).asked.append(f"{self.command} {self.path}")
        content = json.dumps(what).encode()
        self.send_response(code)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def do_GET(self) -> None:
        """A page of a hundred."""
        if self.refusals:
            self._answer({}, self.refusals.pop(0))
            return
        page = int(self.path.rpartition("=")[2])
        self._answer(self.comments[(page - 1) * 100 : page * 100])

    def do_POST(self) -> None:
        """One more."""
        self.comments.append({"id": len(self.comments), "body": self._body()})
        self._answer({}, 201)

    def do_PATCH(self) -> None:
        """Another text."""
        self.comments[int(self.path.rpartition("/")[2])]["body"] = self._body()
        self._answer({})

    def do_PUT(self) -> None:
        """GitLab's word for it."""
        self.do_PATCH()

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""


@pytest.fixture
def service() -> Iterator[tuple[str, type[Service]]]:
    """A service of its own: its address, and what it has."""
    made = type("Made", (Service,), {"comments": [], "asked": [], "refusals": []})
    with ThreadingHTTPServer(("127.0.0.1", 0), made) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}", made
        server.shutdown()
        thread.join()


@dataclass(kw_only=True)
class Checkout:
    """perfsuite where CI has put it, with a `perfsuite compare` that ends at once."""

    path: Path
    status: int = 1
    run: Path | None = RUN
    arguments: list[str] = field(default_factory=list)

    def lay(self) -> None:
        """Write it."""
        (self.path / ".venv/bin").mkdir(parents=True)
        (self.path / ".venv/bin/python").symlink_to(sys.executable)
        program = self.path / ".venv/bin/perfsuite"
        run = "" if self.run is None else str(self.run)
        program.write_text(STUB.format(python=sys.executable, run=run, status=self.status))
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
        (self.path / "tools").symlink_to(ROOT / "tools")
        (self.path / "Makefile").write_text("env:\n\ttouch made\n")


def filled(text: str, values: Mapping[str, str], opened: str, closed: str) -> str:
    """A text with the inputs that a service would put in; one that is unknown is an error."""
    return re.sub(rf"{opened}\s*([\w.]+)\s*{closed}", lambda found: values[found[1]], text)


def ended(script: str, folder: Path, environment: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    """A step, as a runner calls it, with nothing of this environment but the way to programs."""
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
    return subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script],
        cwd=folder,
        env={**kept, **environment},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def action(
    folder: Path, checkout: Checkout, api: str, *, pull_request: int | None = 7, **inputs: str
) -> subprocess.CompletedProcess[str]:
    """The steps of action.yml, one after the other, as GitHub's runner does them."""
    described = yaml.safe_load(ACTION.read_text())
    values = {f"inputs.{name}": each["default"] for name, each in described["inputs"].items()}
    values |= {"inputs.token": "secret"} | {f"inputs.{name}": value for name, value in inputs.items()}
    event = folder / "event.json"
    event.write_text(json.dumps({} if pull_request is None else {"pull_request": {"number": pull_request}}))
    runner = {
        "GITHUB_ACTIONS": "true",
        "GITHUB_ACTION_PATH": str(checkout.path),
        "GITHUB_API_URL": api,
        "GITHUB_EVENT_PATH": str(event),
        "GITHUB_REPOSITORY": "someone/llama.cpp",
        "GITHUB_STEP_SUMMARY": str(folder / "summary.md"),
    }
    for step in described["runs"]["steps"]:
        environment = {name: filled(text, values, r"\$\{\{", r"\}\}") for name, text in step.get("env", {}).items()}
        assert "${{" not in step["run"]  # an input in a script would be run as a part of it
        done = ended(step["run"], folder, runner | environment)
        if done.returncode != 0:
            return done
    return done


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    """A checkout whose comparison finds a regression."""
    return Checkout(path=tmp_path / "perfsuite")


def test_a_regression_fails_the_job_and_writes_one_comment(
    tmp_path: Path, checkout: Checkout, service: tuple[str, type[Service]]
) -> None:
    """It is the stored one, with the verdict and the carrier; the summary has the same run."""
    api, kept = service
    checkout.lay()
    done = action(tmp_path, checkout, api)
    assert done.returncode == 1, done.stderr
    (comment,) = kept.comments
    assert comment["body"] == COMMENT.read_text("utf-8")
    assert "comment written" in done.stdout
    assert "ffn_swiglu" in (tmp_path / "summary.md").read_text()
    assert (checkout.path / "made").exists()
    assert kept.asked[-1] == "POST /repos/someone/llama.cpp/issues/7/comments"


def test_the_kept_comment_is_the_suites_and_renders() -> None:
    """Its table has the verdict, the change and the carrier of each failed case."""
    parsed = MarkdownIt("gfm-like", {"linkify": False}).render(COMMENT.read_text("utf-8"))
    assert parsed.startswith(MARKER)
    for each in ("regressed", "carried by", "<table>", "<details>", "ffn_swiglu"):
        assert each in parsed


def test_the_next_run_replaces_the_comment_behind_a_hundred_others(
    tmp_path: Path, checkout: Checkout, service: tuple[str, type[Service]]
) -> None:
    """And no other: neither one that quotes it, nor that of another job."""
    api, kept = service
    others = [f"> {MARKER}", None, "<!-- perfsuite: comment board -->\nold", *["else"] * 120]
    kept.comments += [{"id": number, "body": body} for number, body in enumerate([*others, f"{MARKER}\nold"])]
    checkout.lay()
    done = action(tmp_path, checkout, api)
    assert "comment updated" in done.stdout
    assert [each["body"] for each in kept.comments] == [*others, COMMENT.read_text("utf-8")]


def test_jobs_with_names_have_a_comment_each(
    tmp_path: Path, checkout: Checkout, service: tuple[str, type[Service]]
) -> None:
    """Known by the name in the marker."""
    api, kept = service
    checkout.lay()
    for name in ("rubikpi", "desk", "rubikpi"):
        action(tmp_path, checkout, api, name=name)
    firsts = [each["body"].partition("\n")[0] for each in kept.comments]
    assert firsts == ["<!-- perfsuite: comment rubikpi -->", "<!-- perfsuite: comment desk -->"]


def test_the_inputs_reach_the_command(tmp_path: Path, checkout: Checkout, service: tuple[str, type[Service]]) -> None:
    """One word each, whatever they hold; options are taken apart at their blanks."""
    checkout.lay()
    build = 'cmake -B build && echo "$(id)"'
    action(tmp_path, checkout, service[0], build=build, base="v1; ls", options="-k phase \n --perf-replicates=3")
    assert json.loads((tmp_path / "asked.json").read_text()) == [
        *("compare", "v1; ls", "HEAD", "--source", ".", "--build", build, "--quiet", "--", "--perf-dir=perf-run"),
        *("--model=smollm2-135m-q8_0", "--perf-budget=3m", "-k", "phase", "--perf-replicates=3"),
    ]


@pytest.mark.parametrize(("strict", "status"), [("false", 0), ("true", 1)])
def test_what_is_undecided_fails_where_that_is_asked_for(
    tmp_path: Path, checkout: Checkout, service: tuple[str, type[Service]], strict: str, status: int
) -> None:
    """It is said either way."""
    checkout.status = 10
    checkout.lay()
    done = action(tmp_path, checkout, service[0], strict=strict)
    assert (done.returncode, "nothing could be decided" in done.stdout) == (status, True)


def test_without_a_run_nothing_is_written(
    tmp_path: Path, checkout: Checkout, service: tuple[str, type[Service]]
) -> None:
    """The exit code is that of the comparison; the run that an earlier job left is not shown as its own."""
    checkout.status, checkout.run = 2, None
    checkout.lay()
    (tmp_path / "perf-run").mkdir()
    (tmp_path / "perf-run/run.json").write_text((RUN / "run.json").read_text())
    done = action(tmp_path, checkout, service[0])
    assert (done.returncode, service[1].asked) == (2, [])


@pytest.mark.parametrize(("refusals", "comments"), [([403], 0), ([502], 1)])
def test_a_refused_comment_is_a_warning(
    tmp_path: Path, checkout: Checkout, service: tuple[str, type[Service]], refusals: list[int], comments: int
) -> None:
    """As for a pull request from a fork, whose token may not write; a service that is busy is asked again."""
    api, kept = service
    kept.refusals += refusals
    checkout.lay()
    done = action(tmp_path, checkout, api)
    assert done.returncode == 1
    assert ("::warning::" in done.stdout, len(kept.comments)) == (comments == 0, comments)


def test_a_push_has_no_comment(tmp_path: Path, checkout: Checkout, service: tuple[str, type[Service]]) -> None:
    """There is no pull request to write on; the summary is written."""
    checkout.lay()
    done = action(tmp_path, checkout, service[0], pull_request=None)
    assert ("no comment" in done.stdout, service[1].asked) == (True, [])
    assert (tmp_path / "summary.md").exists()


def component(values: Mapping[str, str]) -> tuple[dict[str, Any], str]:
    """The job of the component with its inputs put in, and its text."""
    header, _, body = COMPONENT.read_text().partition("\n---\n")
    described = yaml.safe_load(header)["spec"]["inputs"]
    inputs = {f"inputs.{name}": str(each.get("default", "")) for name, each in described.items()}
    inputs |= {f"inputs.{name}": "false" for name, each in described.items() if each.get("default") is False}
    text = filled(body, inputs | {f"inputs.{name}": value for name, value in values.items()}, r"\$\[\[", r"\]\]")
    return yaml.safe_load(text)["perfsuite"], text


def test_the_component_keeps_a_note_on_a_merge_request(
    tmp_path: Path, checkout: Checkout, service: tuple[str, type[Service]]
) -> None:
    """Its own script, run twice: the second replaces what the first wrote."""
    api, kept = service
    job, _ = component({"perfsuite": "https://git.example.org/perfsuite.git", "options": "-k phase"})
    checkout.path = tmp_path / "perfsuite-12"
    checkout.lay()
    gitlab = {
        "CI_BUILDS_DIR": str(tmp_path),
        "CI_JOB_ID": "12",
        "CI_API_V4_URL": f"{api}/api/v4",
        "CI_PROJECT_ID": "99",  # the fork, in which the job runs
        "CI_MERGE_REQUEST_PROJECT_ID": "34",
        "CI_MERGE_REQUEST_IID": "5",
        "CI_MERGE_REQUEST_DIFF_BASE_SHA": "a" * 40,
        "CI_COMMIT_SHA": "b" * 40,
        "PERFSUITE_GITLAB_TOKEN": "secret",
    }
    (line,) = job["script"]
    assert "comment written" in ended(line, tmp_path, gitlab).stdout
    assert "comment updated" in ended(line, tmp_path, gitlab).stdout
    assert len(kept.comments) == 1
    assert kept.asked[-1] == "PUT /api/v4/projects/34/merge_requests/5/notes/0"
    asked = json.loads((tmp_path / "asked.json").read_text())
    assert asked[:5] == ["compare", "a" * 40, "b" * 40, "--source", "."]
    assert asked[-3:] == ["--junitxml=junit.xml", "-k", "phase"]
    ended(line, tmp_path, gitlab | {"CI_MERGE_REQUEST_TARGET_BRANCH_SHA": "c" * 40})  # of the merged result
    assert json.loads((tmp_path / "asked.json").read_text())[:3] == ["compare", "c" * 40, "b" * 40]


def complaints(text: str, folder: Path, *schema: str) -> str:
    """What the service's schema says of a file; "" where it takes it."""
    path = folder / "file.yml"
    path.write_text(text)
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", *schema, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    return "" if done.returncode == 0 else done.stdout + done.stderr


def test_the_services_take_their_files(tmp_path: Path) -> None:
    """By their own schemas, which refuse the same files with another type of a value."""
    text = ACTION.read_text()
    assert complaints(text, tmp_path, "vendor.github-actions") == ""
    assert complaints(text.replace("using: composite", "using: []"), tmp_path, "vendor.github-actions")
    _, text = component({"perfsuite": "https://git.example.org/perfsuite.git"})
    gitlab = ("vendor.gitlab-ci", "--data-transform", "gitlab-ci")
    assert complaints(text, tmp_path, *gitlab) == ""
    assert complaints(text.replace("timeout: 1h", "timeout: []"), tmp_path, *gitlab)


def test_a_comment_is_written_once_even_if_the_answer_is_lost(
    tmp_path: Path, checkout: Checkout, service: tuple[str, type[Service]]
) -> None:
    """What was sent may have arrived: it is a warning, and the next run finds it."""
    api, kept = service

    def lost(self: Service) -> None:
        self.comments.append({"id": len(self.comments), "body": self._body()})
        self._answer({}, 502)

    kept.do_POST = lost  # type: ignore[method-assign]
    checkout.lay()
    assert "::warning::" in action(tmp_path, checkout, api).stdout
    assert "comment updated" in action(tmp_path, checkout, api).stdout
    assert len(kept.comments) == 1


def test_a_summary_that_cannot_be_written_is_a_warning(
    tmp_path: Path, checkout: Checkout, service: tuple[str, type[Service]]
) -> None:
    """The exit code is that of the comparison."""
    checkout.status = 0
    checkout.lay()
    (tmp_path / "summary.md").mkdir()
    done = action(tmp_path, checkout, service[0])
    assert (done.returncode, "::warning::" in done.stdout) == (0, True)

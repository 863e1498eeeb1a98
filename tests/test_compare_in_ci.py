"""What compares a pull request in CI: the actions' and the component's own steps, run here against made-up services."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import pytest
import yaml
from markdown_it import MarkdownIt

from perfsuite.measure.engine import find_engine

from .docs_pages import ROOT
from .test_farm_examples import GITLAB, complaints

ACTION, COMMENTING = ROOT / "action.yml", ROOT / "comment/action.yml"
COMPONENT = ROOT / "templates/compare.yml"
RUN = ROOT / "docs/examples/runs/slower"
COMMENT = ROOT / "tests/data/pull-request-comment.md"
MARKER = "<!-- perfsuite: comment -->"

#: The inputs of a job that gives none.
NONE: Mapping[str, str] = {}

#: Who writes with the token.
AUTHOR = "perfsuite-bot"
TOKEN = "the-token-that-may-write"

#: Code of a pull request that looks for the token where its account can: in the processes that have started it.
SPY = f"""
import os
pid = os.getpid()
while pid > 1:
    try:
        if b"{TOKEN}" in open(f"/proc/{{pid}}/environ", "rb").read():
            open("stolen", "w").close()
        pid = int(open(f"/proc/{{pid}}/stat").read().rpartition(")")[2].split()[1])
    except OSError:
        break
"""

#: Stands in for `perfsuite compare`, which would compile llama.cpp twice; what it exports is real.
STUB = """#!{python}
import json, os, shutil, sys
from pathlib import Path
words = sys.argv[1:]
if {is_real!r} and words[0] == "compare":
    words[5:5] = ["--build", "sh build.sh"]
if words[0] == "export" or {is_real!r}:
    os.execv({python!r}, [{python!r}, "-P", "-m", "perfsuite.cli", *words])
Path("asked.json").write_text(json.dumps(words))
exec({spy!r})
(folder,) = [each.partition("=")[2] for each in words if each.startswith("--perf-dir=")]
if {run!r}:
    shutil.copytree({run!r}, folder, copy_function=shutil.copy, dirs_exist_ok=True)
sys.exit({status})
"""


def comment(number: int, body: str | None, author: str) -> dict[str, Any]:
    return {"id": number, "body": body, "user": {"login": author}, "author": {"username": author}}


class Service(BaseHTTPRequestHandler):
    """GitHub's and GitLab's comments, as far as they are asked for."""

    comments: ClassVar[list[dict[str, Any]]]
    asked: ClassVar[list[str]]
    refusals: ClassVar[list[int]]
    author: ClassVar[str]

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
        """A page of a hundred, or who asks, which GitHub does not tell a job's own token."""
        if self.path.endswith("/user"):
            self._answer({"login": self.author, "username": self.author}, 200 if self.author == AUTHOR else 403)
            return
        if self.refusals:
            self._answer({}, self.refusals.pop(0))
            return
        page = int(self.path.rpartition("=")[2])
        self._answer(self.comments[(page - 1) * 100 : page * 100])

    def do_POST(self) -> None:
        self.comments.append(comment(len(self.comments), self._body(), self.author))
        self._answer({}, 201)

    def do_PATCH(self) -> None:
        self.comments[int(self.path.rpartition("/")[2])]["body"] = self._body()
        self._answer({})

    do_PUT = do_PATCH  # noqa: N815 - GitLab's word for it

    def log_message(self, format: str, *args: Any) -> None:
        pass


@dataclass(kw_only=True)
class Job:
    """Jobs of one pull request: perfsuite where CI has put it, with a `perfsuite compare` that ends at once."""

    #: Where the pull request is checked out.
    folder: Path
    path: Path
    api: str
    kept: type[Service]
    status: int = 1
    run: Path | None = RUN
    is_real: bool = False

    def lay(self) -> None:
        """Put perfsuite there."""
        shutil.rmtree(self.path, ignore_errors=True)
        (self.path / ".venv/bin").mkdir(parents=True)
        (self.path / ".venv/bin/python").symlink_to(sys.executable)
        program = self.path / ".venv/bin/perfsuite"
        words = {"python": sys.executable, "run": str(self.run or ""), "status": self.status, "spy": SPY}
        program.write_text(STUB.format(**words, is_real=self.is_real))
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
        (self.path / "tools").symlink_to(ROOT / "tools")
        (self.path / "comment").mkdir()
        (self.path / "Makefile").write_text("env:\n\ttouch made\n")

    def other_machine(self, handed: str) -> Path:
        """A folder with the file or folder that is handed on to the job that comments."""
        other, source = self.folder / "other-machine", self.folder / handed
        shutil.rmtree(other, ignore_errors=True)
        (other / handed).parent.mkdir(parents=True)
        if source.is_dir():
            shutil.copytree(source, other / handed)
        elif source.exists():
            shutil.copy(source, other / handed)
        return other

    def action(
        self, inputs: Mapping[str, str] = NONE, *, pull_request: int | None = 7
    ) -> subprocess.CompletedProcess[str]:
        """A job by action.yml, and one by comment/action.yml that has its run.json; the status is the first's."""
        self.lay()
        event = self.folder / "event.json"
        event.write_text(json.dumps({} if pull_request is None else {"pull_request": {"number": pull_request}}))
        runner = {
            "GITHUB_ACTIONS": "true",
            "GITHUB_API_URL": self.api,
            "GITHUB_EVENT_PATH": str(event),
            "GITHUB_REPOSITORY": "someone/llama.cpp",
            "GITHUB_STEP_SUMMARY": str(self.folder / "summary.md"),
        }
        compared = steps(ACTION, self.folder, runner | {"GITHUB_ACTION_PATH": str(self.path)}, inputs)
        told = {"token": TOKEN, "name": inputs.get("name", "")}
        runner["GITHUB_ACTION_PATH"] = str(self.path / "comment")
        return both(compared, steps(COMMENTING, self.other_machine("perf-run/run.json"), runner, told))

    def pipeline(self, inputs: Mapping[str, str], **variables: str) -> subprocess.CompletedProcess[str]:
        """The component's jobs, each in a folder of its own, which the artifacts are handed on to."""
        self.lay()
        jobs, _ = component(inputs)
        gitlab = {
            "CI_BUILDS_DIR": str(self.path.parent),
            "CI_JOB_ID": self.path.name.rpartition("-")[2],
            "CI_API_V4_URL": f"{self.api}/api/v4",
            "CI_PROJECT_ID": "99",  # the fork, in which the job runs
            "CI_MERGE_REQUEST_PROJECT_ID": "34",
            "CI_MERGE_REQUEST_IID": "5",
            "CI_MERGE_REQUEST_DIFF_BASE_SHA": "a" * 40,
            "CI_COMMIT_SHA": "b" * 40,
            **variables,
        }
        assert "environment" not in jobs["perfsuite"]  # the token's scope is the comment's job
        assert jobs["perfsuite-comment"]["environment"]["name"] == "perfsuite-comment"
        compared = ended(jobs["perfsuite"]["script"][-1], self.folder, gitlab)
        gitlab["PERFSUITE_GITLAB_TOKEN"] = TOKEN
        return both(compared, ended(jobs["perfsuite-comment"]["script"][-1], self.other_machine("perf-run"), gitlab))

    def are_mine(self) -> list[bool]:
        """Which of the comments are as somebody else left them."""
        return [each["body"].partition("\n")[2] == "mine" for each in self.kept.comments]


@pytest.fixture
def job(tmp_path: Path) -> Iterator[Job]:
    """Jobs with a service of their own, whose comparison finds a regression."""
    made = type("Made", (Service,), {"comments": [], "asked": [], "refusals": [], "author": AUTHOR})
    with ThreadingHTTPServer(("127.0.0.1", 0), made) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        api = f"http://127.0.0.1:{server.server_port}"
        yield Job(folder=tmp_path, path=tmp_path / "perfsuite-12", api=api, kept=made)
        server.shutdown()
        thread.join()


def filled(text: str, values: Mapping[str, str], opened: str, closed: str) -> str:
    """A text with the inputs that a service would put in; one that is unknown is an error."""
    return re.sub(rf"{opened}\s*([\w.]+)\s*{closed}", lambda found: values[found[1]], text)


def ended(script: str, folder: Path, environment: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    """A step, as a runner calls it, with nothing of this environment but the way to programs."""
    names = ("PATH", "HOME", "LANG", "PERFSUITE_LOCK_DIR")
    kept = {name: os.environ[name] for name in names if name in os.environ} | {"XDG_CACHE_HOME": f"{folder}/cache"}
    return subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script],
        cwd=folder,
        env={**kept, **environment},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def both(
    compared: subprocess.CompletedProcess[str], told: subprocess.CompletedProcess[str]
) -> subprocess.CompletedProcess[str]:
    output = (f"{compared.stdout}{told.stdout}", f"{compared.stderr}{told.stderr}")
    return subprocess.CompletedProcess((), compared.returncode, *output)


def steps(
    described: Path, folder: Path, runner: Mapping[str, str], inputs: Mapping[str, str]
) -> subprocess.CompletedProcess[str]:
    """The steps of an action, one after the other, as GitHub's runner does them; artifacts are the caller's."""
    plain = yaml.safe_load(described.read_text())
    values = {f"inputs.{name}": each["default"] for name, each in plain["inputs"].items()}
    assert inputs.keys() <= plain["inputs"].keys()
    values |= {f"inputs.{name}": value for name, value in inputs.items()}
    for step in (each for each in plain["runs"]["steps"] if "run" in each):
        environment = {name: filled(text, values, r"\$\{\{", r"\}\}") for name, text in step.get("env", {}).items()}
        assert "${{" not in step["run"]  # an input in a script would be run as a part of it
        done = ended(step["run"], folder, {**runner, **environment})
        if done.returncode != 0:
            break
    return done


def test_a_regression_fails_the_job_and_writes_one_comment(tmp_path: Path, job: Job) -> None:
    """It is the stored one, with the verdict and the carrier; the summary has the same run."""
    done = job.action()
    assert done.returncode == 1, done.stderr
    assert [each["body"] for each in job.kept.comments] == [COMMENT.read_text("utf-8")]
    assert not (tmp_path / "stolen").exists()
    assert "comment written" in done.stdout
    assert "ffn_swiglu" in (tmp_path / "summary.md").read_text()
    assert (job.path / "made").exists()
    assert job.kept.asked[-1] == "POST /repos/someone/llama.cpp/issues/7/comments"


def test_the_kept_comment_renders() -> None:
    """Its table has the verdict, the change and the carrier of each failed case."""
    parsed = MarkdownIt("gfm-like", {"linkify": False}).render(COMMENT.read_text("utf-8"))
    assert parsed.startswith(MARKER)
    for each in ("regressed", "carried by", "<table>", "<details>", "ffn_swiglu"):
        assert each in parsed


def test_the_next_run_replaces_the_comment_behind_a_hundred_others(job: Job) -> None:
    others = [f"> {MARKER}", None, "<!-- perfsuite: comment board -->\nold", *["else"] * 120]
    job.kept.comments += [comment(number, body, AUTHOR) for number, body in enumerate([*others, f"{MARKER}\nold"])]
    assert "comment updated" in job.action().stdout
    assert [each["body"] for each in job.kept.comments] == [*others, COMMENT.read_text("utf-8")]


@pytest.mark.long
def test_jobs_with_names_have_a_comment_each(job: Job) -> None:
    for name in ("rubikpi", "desk", "rubikpi"):
        job.action({"name": name})
    firsts = [each["body"].partition("\n")[0] for each in job.kept.comments]
    assert firsts == ["<!-- perfsuite: comment rubikpi -->", "<!-- perfsuite: comment desk -->"]


def test_the_inputs_reach_the_command(tmp_path: Path, job: Job) -> None:
    """One word each, whatever they hold; options are taken apart at their blanks."""
    build = 'cmake -B build && echo "$(id)"'
    job.action({"build": build, "base": "v1; ls", "options": "-k phase \n --perf-replicates=3"})
    assert json.loads((tmp_path / "asked.json").read_text()) == [
        *("compare", "v1; ls", "HEAD", "--source", ".", "--build", build, "--quiet", "--", "--perf-dir=perf-run"),
        *("--model=smollm2-135m-q8_0", "--perf-budget=3m", "-k", "phase", "--perf-replicates=3"),
    ]


@pytest.mark.parametrize(
    ("found", "inputs", "status"),
    [
        (10, {}, 0),
        (10, {"suspect": "fail"}, 0),
        (10, {"strict": "true"}, 1),
        (11, {}, 0),
        (11, {"strict": "true"}, 0),
        (11, {"suspect": "fail"}, 1),
    ],
)
@pytest.mark.long_but_first
def test_what_is_undecided_or_suspect_fails_where_that_is_asked_for(
    job: Job, found: int, inputs: dict[str, str], status: int
) -> None:
    job.status = found
    done = job.action(inputs)
    told = {10: "nothing could be decided", 11: "looks slower, not proven"}[found]
    assert (done.returncode, f"::warning::perfsuite: {told}" in done.stdout) == (status, True)


@pytest.mark.parametrize("status", [0, 2, 10])
def test_without_a_run_nothing_is_written(tmp_path: Path, job: Job, status: int) -> None:
    """No run is no pass; the one that an earlier job or the pull request left is not shown as this job's own."""
    job.status, job.run = status, None
    (tmp_path / "perf-run").mkdir()
    (tmp_path / "perf-run/run.json").write_text((RUN / "run.json").read_text())
    assert (job.action().returncode, job.kept.asked) == (status or 1, [])


@pytest.mark.parametrize("name", ["GITHUB_TOKEN", "PERFSUITE_GITLAB_TOKEN"])
def test_a_job_that_compares_takes_no_token(tmp_path: Path, job: Job, name: str) -> None:
    job.lay()
    command = f'"{job.path}/.venv/bin/python" "{job.path}/tools/compare_in_ci.py" a b'
    done = ended(command, tmp_path, {name: TOKEN})
    assert (done.returncode, f"{name}: is set in the job" in done.stderr) == (2, True)
    assert not (tmp_path / "asked.json").exists()


@pytest.mark.long_but_first
@pytest.mark.parametrize("author", [AUTHOR, "github-actions[bot]"])
def test_anothers_comment_is_never_written_over(job: Job, author: str) -> None:
    """Anybody may begin one with the marker; it is known by its author, also where the token may not ask who it is."""
    job.kept.author = author
    job.kept.comments.append(comment(0, f"{MARKER}\nmine", "somebody"))
    assert "comment written" in job.action().stdout
    assert "comment updated" in job.action().stdout
    assert job.are_mine() == [True, False]


@pytest.mark.parametrize(("refusals", "comments"), [([403], 0), ([502], 1)])
def test_a_refused_comment_is_a_warning(job: Job, refusals: list[int], comments: int) -> None:
    """As for a pull request from a fork, whose token may not write; a service that is busy is asked again."""
    job.kept.refusals += refusals
    done = job.action()
    told = ("::warning::" in done.stdout, len(job.kept.comments))
    assert (done.returncode, *told) == (1, comments == 0, comments)


@pytest.mark.long
def test_a_comment_is_written_once_even_if_the_answer_is_lost(job: Job) -> None:
    """What was sent may have arrived: it is a warning, and the next run finds it."""

    def lost(self: Service) -> None:
        self.comments.append(comment(len(self.comments), self._body(), AUTHOR))
        self._answer({}, 502)

    job.kept.do_POST = lost  # type: ignore[method-assign]
    assert "::warning::" in job.action().stdout
    assert "comment updated" in job.action().stdout
    assert len(job.kept.comments) == 1


def test_a_push_has_no_comment(tmp_path: Path, job: Job) -> None:
    """There is no pull request to write on; the summary is written."""
    assert ("no comment" in job.action(pull_request=None).stdout, job.kept.asked) == (True, [])
    assert (tmp_path / "summary.md").is_file()


def test_a_summary_that_cannot_be_written_is_a_warning(tmp_path: Path, job: Job) -> None:
    job.status = 0
    (tmp_path / "summary.md").mkdir()
    done = job.action()
    assert (done.returncode, "::warning::" in done.stdout) == (0, True)


def component(values: Mapping[str, str]) -> tuple[dict[str, Any], str]:
    header, _, body = COMPONENT.read_text().partition("\n---\n")
    described = yaml.safe_load(header)["spec"]["inputs"]
    usual = {name: each.get("default", "") for name, each in described.items()}
    usual |= {"perfsuite": "https://git.example.org/perfsuite.git", **values}
    inputs = {f"inputs.{name}": "false" if value is False else str(value) for name, value in usual.items()}
    text = filled(body, inputs, r"\$\[\[", r"\]\]")
    return yaml.safe_load(text), text


@pytest.mark.long
def test_the_component_keeps_a_note_on_a_merge_request(tmp_path: Path, job: Job) -> None:
    """Its own scripts, run twice: the second replaces what the first wrote."""

    def asked() -> list[str]:
        words: list[str] = json.loads((tmp_path / "asked.json").read_text())
        return words

    options = {"options": "-k phase"}
    assert "comment written" in job.pipeline(options).stdout
    assert "comment updated" in job.pipeline(options).stdout
    assert len(job.kept.comments) == 1
    assert not (tmp_path / "stolen").exists()
    assert job.kept.asked[-1] == "PUT /api/v4/projects/34/merge_requests/5/notes/0"
    assert asked()[:5] == ["compare", "a" * 40, "b" * 40, "--source", "."]
    assert asked()[-3:] == ["--junitxml=junit.xml", "-k", "phase"]
    job.pipeline(options, CI_MERGE_REQUEST_TARGET_BRANCH_SHA="c" * 40)  # of the merged result
    assert asked()[:3] == ["compare", "c" * 40, "b" * 40]


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    """The checkout of a pull request whose every file wants to be run, or to be asked; its base is `HEAD^1`."""
    harm = f"open({str(tmp_path / 'harmed')!r}, 'a').write(__name__)\n"
    libraries = find_engine().library_dir
    asks = "[pytest]\naddopts = --collect-only\nperf_margin = 0.9\n"
    files = {
        **{f"{name}.py": harm for name in ("conftest", "json", "msgspec", "perfsuite", "pytest", "subprocess")},
        "pytest.ini": asks,
        "tox.ini": asks,
        "devices/host.toml": "[judging.margin_ratio]\nphase = 0.9\n",
        "perf-run/run.json": (RUN / "run.json").read_text(),
        "spy.py": f"import os\nos.chdir({str(tmp_path)!r})\n{SPY}",
        "build.sh": f"{shlex.quote(sys.executable)} spy.py && mkdir build && ln -s '{libraries}' build/bin\n",
    }
    for name, text in files.items():
        (tmp_path / "checkout" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "checkout" / name).write_text(text)
    git = ["git", "-C", str(tmp_path / "checkout"), "-c", "user.name=eve", "-c", "user.email=eve@desk"]
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-qm1"], ["commit", "-qm2", "--allow-empty"]):
        subprocess.run([*git, *words], check=True)
    return tmp_path / "checkout"


@pytest.mark.measures
@pytest.mark.parametrize("of", ["github", "gitlab"])
def test_a_hostile_pull_request_chooses_nothing_and_learns_nothing(
    tmp_path: Path, hostile: Path, job: Job, of: str
) -> None:
    """Its margins, profiles, options, modules and runs are nobody's; the token is in no process that runs its code."""
    job.kept.comments.append(comment(0, f"{MARKER}\nmine", "eve"))
    job.folder, job.is_real = hostile, True
    inputs = {"model": "smollm2-135m-l2-q8_0", "budget": "2s"}
    inputs["options"] = "--n-prompt=4 --n-gen=2 --threads=1 -k phase --perf-calibrate=off"
    sides = {"CI_MERGE_REQUEST_DIFF_BASE_SHA": "HEAD^1", "CI_COMMIT_SHA": "HEAD"}
    done = job.action(inputs) if of == "github" else job.pipeline(inputs, **sides)
    assert done.returncode in (0, 1), done.stderr
    assert [name for name in ("stolen", "harmed") if (tmp_path / name).exists()] == []
    found = json.loads((hostile / "perf-run/run.json").read_text())
    asked = ["git", "-C", str(hostile), "rev-parse", "HEAD"]
    head = subprocess.run(asked, capture_output=True, text=True, check=True).stdout
    assert (found["commit"]["sha"], found["interrupted"]) == (head.strip(), False)
    (margin_ratio,) = (each["margin_ratio"] for each in found["cases"] if each["id"].endswith("/prefill"))
    assert margin_ratio in (None, 0.02)  # none of too few pairs
    assert job.are_mine() == [True, False]


def test_the_services_take_their_files(tmp_path: Path) -> None:
    """By their own schemas, which refuse the same files with another type of a value."""
    text = ACTION.read_text()
    action = ("--builtin-schema", "vendor.github-actions")
    assert complaints(text, tmp_path, action) == ""
    assert complaints(text.replace("using: composite", "using: []"), tmp_path, action)
    assert complaints(COMMENTING.read_text(), tmp_path, action) == ""
    _, text = component({})
    assert complaints(text, tmp_path, GITLAB) == ""
    assert complaints(text.replace("timeout: 1h", "timeout: []"), tmp_path, GITLAB)

"""Compare a pull request's llama.cpp with its base, and keep one comment of it up to date.

    python tools/compare_in_ci.py BASE HEAD --source DIR [--name NAME] [--strict=true] [-- OPTION ...]

`perfsuite compare` does the work; options behind '--' are its own. What it wrote goes into the job's summary and into
one comment on the pull request (GitHub) or merge request (GitLab), which the next run replaces. The service and the
request are known by the variables that both set for a job; GITHUB_TOKEN or PERFSUITE_GITLAB_TOKEN is what may write.
A comment that cannot be written is a warning: a pull request from a fork has no token that may. What is compared runs
without the token.

Exit codes: 0 nothing regressed, or nothing could be decided; 1 something regressed (with --strict: or nothing was
decided); others are those of `perfsuite compare`.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

PERFSUITE = Path(sys.executable).with_name("perfsuite")
#: The first line of what `perfsuite export markdown` writes.
MARKER = "<!-- perfsuite: comment -->"
#: How long a request may take, how often it is tried, and how long is waited between.
LIMIT_S, N_TRIES, PAUSE_S = 30.0, 3, 2.0
#: So many comments are looked through, 100 a page.
N_PAGES = 50
#: What may write comments, by the names of its variables.
TOKENS = ("GITHUB_TOKEN", "PERFSUITE_GITLAB_TOKEN")
#: Nothing could be judged, as `perfsuite compare` and pytest say it.
UNDECIDED = 10


class UnwritableError(Exception):
    """A comment could not be read or written; says why in one line."""


def asked(method: str, url: str, headers: Mapping[str, str], body: Mapping[str, str] | None = None) -> Any:
    """Return what a service answers; tried again where that writes nothing twice."""
    content = None if body is None else json.dumps(body).encode()
    told = {"User-Agent": "perfsuite", "Content-Type": "application/json", **headers}
    request = urllib.request.Request(url, content, told, method=method)
    for left in reversed(range(1 if method == "POST" else N_TRIES)):
        try:
            with urllib.request.urlopen(request, timeout=LIMIT_S) as answer:  # nosec B310  # of CI's own variables
                return json.load(answer)
        except urllib.error.HTTPError as error:
            if error.code < 500 or not left:
                raise UnwritableError(f"{method} {url}: {error.code} {error.reason}") from error
        except (OSError, ValueError, http.client.HTTPException) as error:
            if not left:
                raise UnwritableError(f"{method} {url}: {error}") from error
        time.sleep(PAUSE_S)
    raise AssertionError("the last try returns or raises")


class Service(Protocol):
    """Where comments are kept."""

    headers: Mapping[str, str]
    #: The request's comments, and one of them by its number.
    comments: str
    update_method: str

    def comment(self, number: int) -> str:
        """Return the address of one comment."""


@dataclass(frozen=True, kw_only=True)
class GitHub:
    """*Source*: GitHub Docs, REST API, 'Issue comments'."""

    api: str
    repository: str
    number: int
    token: str
    update_method: str = "PATCH"

    @property
    def headers(self) -> Mapping[str, str]:
        return {"Authorization": f"Bearer {self.token}", "Accept": "application/vnd.github+json"}

    @property
    def comments(self) -> str:
        return f"{self.api}/repos/{self.repository}/issues/{self.number}/comments"

    def comment(self, number: int) -> str:
        return f"{self.api}/repos/{self.repository}/issues/comments/{number}"


@dataclass(frozen=True, kw_only=True)
class GitLab:
    """*Source*: GitLab Docs, 'Notes API'."""

    api: str
    project: str
    number: int
    token: str
    update_method: str = "PUT"

    @property
    def headers(self) -> Mapping[str, str]:
        return {"PRIVATE-TOKEN": self.token}

    @property
    def comments(self) -> str:
        return f"{self.api}/projects/{self.project}/merge_requests/{self.number}/notes"

    def comment(self, number: int) -> str:
        return f"{self.comments}/{number}"


def service(environment: Mapping[str, str]) -> Service | None:
    """Return where this job's comments go; None where it has no request, or no token that may write."""
    if environment.get("GITHUB_TOKEN") and environment.get("GITHUB_EVENT_PATH"):
        event = json.loads(Path(environment["GITHUB_EVENT_PATH"]).read_text("utf-8"))
        number = event.get("pull_request", {}).get("number")
        if number is None:
            return None
        api = environment.get("GITHUB_API_URL", "https://api.github.com")
        repository, token = environment["GITHUB_REPOSITORY"], environment["GITHUB_TOKEN"]
        return GitHub(api=api, repository=repository, number=number, token=token)
    if environment.get("PERFSUITE_GITLAB_TOKEN") and environment.get("CI_MERGE_REQUEST_IID"):
        # a fork's job runs in the fork; the merge request is of the project that it goes to
        api, project = environment["CI_API_V4_URL"], environment["CI_MERGE_REQUEST_PROJECT_ID"]
        number, token = int(environment["CI_MERGE_REQUEST_IID"]), environment["PERFSUITE_GITLAB_TOKEN"]
        return GitLab(api=api, project=project, number=number, token=token)
    return None


def existing(where: Service, marker: str) -> Iterator[int]:
    """Yield the number of each comment that this job wrote before."""
    for page in range(1, N_PAGES + 1):
        found = asked("GET", f"{where.comments}?per_page=100&page={page}", where.headers)
        yield from (each["id"] for each in found if (each.get("body") or "").startswith(marker))
        if len(found) < 100:
            return


def keep_comment(where: Service, text: str, marker: str) -> str:
    """Replace the comment that begins with the marker, or write the first; return what was done."""
    for number in existing(where, marker):
        asked(where.update_method, where.comment(number), where.headers, {"body": text})
        return "updated"
    asked("POST", where.comments, where.headers, {"body": text})
    return "written"


def exported(form: str, run: Path) -> str:
    """Return a run in one of the forms of `perfsuite export`."""
    command = [PERFSUITE, "export", form, run]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, encoding="utf-8").stdout


def tell(run: Path, name: str, environment: Mapping[str, str]) -> None:
    """Write the job's summary and the comment; where that fails, warn: the verdict stays what it is."""
    try:
        if summary := environment.get("GITHUB_STEP_SUMMARY"):
            with Path(summary).open("a", encoding="utf-8") as file:
                file.write(exported("github", run))
        where = service(environment)
        if where is None:
            print("no comment: this job has no pull request, or no token that may write one")
            return
        marker = MARKER if not name else f"<!-- perfsuite: comment {name} -->"
        print(f"comment {keep_comment(where, exported('markdown', run).replace(MARKER, marker, 1), marker)}")
    except (UnwritableError, KeyError, ValueError, OSError, subprocess.SubprocessError) as error:
        warning = "::warning::" if "GITHUB_ACTIONS" in environment else "warning: "
        print(f"{warning}perfsuite could not write its comment: {error}")


def main() -> int:
    """Compare, tell, and end as the verdict says."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("base", help="revision that is compared with")
    parser.add_argument("head", help="revision that is judged")
    parser.add_argument("--source", default=".", metavar="DIR", help="the checkout of llama.cpp that has both")
    parser.add_argument("--build", default="", metavar="COMMAND", help="builds a revision (default: perfsuite's own)")
    parser.add_argument("--run-dir", default="perf-run", metavar="DIR", type=Path, help="where the run's files go")
    parser.add_argument("--name", default="", help="tells comments of several jobs apart, such as the device's name")
    text = "true fails where nothing could be decided, too (default false)"
    parser.add_argument("--strict", choices=("true", "false"), default="false", help=text)
    arguments = sys.argv[1:]
    dashes = arguments.index("--") if "--" in arguments else len(arguments)
    options = parser.parse_args(arguments[:dashes])
    if not options.name.replace("-", "").replace("_", "").replace(".", "").isalnum() and options.name:
        parser.error(f"--name {options.name!r}: letters, digits, '-', '_' and '.' only")
    build = ["--build", options.build] if options.build else []
    written = options.run_dir / "run.json"
    before = written.stat().st_mtime_ns if written.is_file() else None
    command = [str(PERFSUITE), "compare", options.base, options.head, "--source", options.source, *build, "--quiet"]
    command += ["--", f"--perf-dir={options.run_dir}", *arguments[dashes + 1 :]]
    # A pull request's own code is built and run: it need not have what may write.
    environment = {name: value for name, value in os.environ.items() if name not in TOKENS}
    status = subprocess.run(command, env=environment, check=False).returncode
    if written.is_file() and written.stat().st_mtime_ns != before:
        tell(options.run_dir, options.name, os.environ)
    if status == UNDECIDED:
        print("perfsuite: nothing could be decided; give it more time, or a machine on which nothing else runs")
        return 1 if options.strict == "true" else 0
    return status


if __name__ == "__main__":
    sys.exit(main())

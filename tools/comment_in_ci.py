"""Keep one comment on a pull request (GitHub) or merge request (GitLab) up to date with a run.json.

    python tools/comment_in_ci.py perf-run/run.json [--name NAME]

It runs in a job of its own, which has the token and none of the code that was compared: what measures shares no machine
account with it, and gives it run.json alone. The service and the request are known by the variables that both set for
a job; GITHUB_TOKEN or PERFSUITE_GITLAB_TOKEN is what may write. The comment that is replaced is the token's own, and
begins with the marker. One that cannot be written is a warning: a pull request from a fork has no token that may.
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
#: Who writes with the token of a job of GitHub's, which may not ask who it is.
JOB_AUTHOR = "github-actions[bot]"


class UnwritableError(Exception):
    """A comment could not be read or written; says why in one line, with the service's code where it gave one."""

    def __init__(self, message: str, code: int | None = None) -> None:
        super().__init__(message)
        self.code = code


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
                raise UnwritableError(f"{method} {url}: {error.code} {error.reason}", error.code) from error
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
    api: str
    update_method: str
    #: What a comment calls its author, and an account its name.
    author: str
    login: str

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
    author: str = "user"
    login: str = "login"

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
    author: str = "author"
    login: str = "username"

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


def own_name(where: Service) -> str:
    """Return who writes with the token."""
    try:
        return str(asked("GET", f"{where.api}/user", where.headers)[where.login])
    except UnwritableError as error:
        if error.code != 403 or not isinstance(where, GitHub):
            raise
        return JOB_AUTHOR


def existing(where: Service, marker: str) -> Iterator[int]:
    """Yield the number of each comment that this job wrote before: anybody may begin one with the marker."""
    name = own_name(where)
    for page in range(1, N_PAGES + 1):
        found = asked("GET", f"{where.comments}?per_page=100&page={page}", where.headers)
        own = (each for each in found if (each.get(where.author) or {}).get(where.login) == name)
        yield from (each["id"] for each in own if (each.get("body") or "").startswith(marker))
        if len(found) < 100:
            return


def keep_comment(where: Service, text: str, marker: str) -> str:
    """Replace the comment that begins with the marker, or write the first; return what was done."""
    for number in existing(where, marker):
        asked(where.update_method, where.comment(number), where.headers, {"body": text})
        return "updated"
    asked("POST", where.comments, where.headers, {"body": text})
    return "written"


def tell(run: Path, name: str, environment: Mapping[str, str]) -> None:
    """Write the comment; where that fails, warn: the verdict stays what it is."""
    try:
        where = service(environment)
        if where is None:
            print("no comment: this job has no pull request, or no token that may write one")
            return
        command = [PERFSUITE, "export", "markdown", run]
        text = subprocess.run(command, check=True, stdout=subprocess.PIPE, encoding="utf-8").stdout
        marker = MARKER if not name else f"<!-- perfsuite: comment {name} -->"
        print(f"comment {keep_comment(where, text.replace(MARKER, marker, 1), marker)}")
    except (UnwritableError, KeyError, ValueError, OSError, subprocess.SubprocessError) as error:
        warning = "::warning::" if "GITHUB_ACTIONS" in environment else "warning: "
        print(f"{warning}perfsuite could not write its comment: {error}")


def main() -> int:
    """Write the comment, if the comparison left a run."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("run", type=Path, help="run.json of the comparison")
    parser.add_argument("--name", default="", help="tells comments of several jobs apart, such as the device's name")
    options = parser.parse_args()
    if not options.name.replace("-", "").replace("_", "").replace(".", "").isalnum() and options.name:
        parser.error(f"--name {options.name!r}: letters, digits, '-', '_' and '.' only")
    if options.run.is_file():
        tell(options.run, options.name, os.environ)
    else:
        print("no comment: the comparison left no run")
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""What docs/security.md claims: each claim has its test, secrets are kept nowhere, and weaknesses are looked for."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from perfsuite.errors import HistoryError
from perfsuite.report.history import store
from perfsuite.report.history.store import BucketStore
from tools import audit_packages

ROOT = Path(__file__).resolve().parent.parent

PAGE = (ROOT / "docs" / "security.md").read_text(encoding="utf-8")

#: A test as the page names it.
_NAMED = re.compile(r"`(tests/[\w/]+\.py)::(test_\w+)`")


def test_each_claim_has_its_test() -> None:
    """Every test that the page names is there, and every row of its tables names one."""
    named = _NAMED.findall(PAGE)
    assert len(named) > 20
    assert [each for each in named if f"\ndef {each[1]}(" not in (ROOT / each[0]).read_text(encoding="utf-8")] == []
    rows = [line for line in PAGE.splitlines() if line.startswith("| ") and not line.endswith("| Test |")]
    assert [row for row in rows if not _NAMED.search(row)] == []


def test_the_page_is_short() -> None:
    """At most 900 words, the names of tests not counted."""
    assert len(re.findall(r"[\w'.-]*\w", _NAMED.sub("", PAGE))) <= 900


def test_an_error_of_s3_shows_no_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not even where the endpoint's address has a password and the server is away."""
    pytest.importorskip("obstore")
    monkeypatch.setattr(store, "_MOST_REPETITIONS", 0)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "hunter-1")
    monkeypatch.setenv("AWS_SESSION_TOKEN", "hunter-2")
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://me:hunter-3@127.0.0.1:9")
    with pytest.raises(HistoryError) as told:
        BucketStore("s3://farm/nights").paths()
    assert "cannot be" in str(told.value)
    assert "hunter-" not in str(told.value)


@cache
def _nodes() -> list[tuple[str, ast.AST]]:
    paths = sorted((ROOT / "perfsuite").rglob("*.py"))
    trees = [(path.relative_to(ROOT).as_posix(), ast.parse(path.read_text(encoding="utf-8"))) for path in paths]
    return [(path, node) for path, tree in trees for node in ast.walk(tree)]


def _calls(name: str) -> Iterator[tuple[str, ast.Call]]:
    """Yield the calls of a function in the suite, by the end of its name."""
    for path, node in _nodes():
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith(name):
            yield path, node


def test_the_cache_is_asked_for_in_one_place() -> None:
    """So that no command takes a folder of another account for the user's own."""
    assert {path for path, _ in _calls("user_cache_dir")} == {"perfsuite/records/own_files.py"}


def test_no_python_is_started_in_a_way_that_imports_from_the_current_folder() -> None:
    """By one function, which leaves that folder out; or isolated; or by a file's path, whose folder is the suite's."""
    started = set()
    for path, node in _nodes():
        words = [ast.unparse(each) for each in node.elts] if isinstance(node, ast.List | ast.Tuple) else []
        if words[:1] == ["sys.executable"] and words[1:2] not in (["'-I'"], ["str(_CHILD)"]):
            started.add(path)
    assert started == {"perfsuite/records/own_files.py", "perfsuite/measure/counted_call.py"}


def test_what_is_made_under_a_known_name_follows_no_link() -> None:
    """A file that is made through the system's own call is new, or no link is followed."""
    made = [(path, ast.unparse(node)) for path, node in _calls("os.open") if "O_CREAT" in ast.unparse(node)]
    assert made
    assert [each for each in made if "O_EXCL" not in each[1] and "O_NOFOLLOW" not in each[1]] == []


def test_nothing_is_unpacked_or_executed_unseen() -> None:
    """No archive but a wheel is unpacked as a whole, and no text is executed as Python.

    Unpickled is what `perf.count` has pickled itself, in the process that it starts.
    """
    for name in (".extract", "mktemp"):
        assert list(_calls(name)) == [], name
    unpickled = {path for name in ("pickle.loads", "pickle.load") for path, _ in _calls(name)}
    assert unpickled == {"perfsuite/measure/counted_child.py"}
    # a wheel that the suite has built, by zipfile, which makes no links and leaves its folder alone
    assert {path for path, _ in _calls(".extractall")} == {"perfsuite/measure/bundle/named_builds.py"}
    assert [path for path, node in _calls("eval") if ast.unparse(node.func) in ("eval", "exec")] == []


@pytest.mark.parametrize(
    ("printed", "code", "told"),
    [
        ('{"dependencies": [{"name": "a", "version": "1", "vulns": []}]}', 0, "audit: 1 packages, 0 vulnerabilities"),
        (
            '{"dependencies": [{"name": "a", "version": "1", "vulns": [{"id": "X-1", "fix_versions": ["2"]}]}]}',
            1,
            "audit: a 1: X-1; repaired in 2",
        ),
        (
            '{"dependencies": [{"name": "a", "version": "1", "vulns": [{"id": "X-1", "fix_versions": []}]}]}',
            0,
            "audit: a 1: X-1; no version repairs it yet",
        ),
        ('{"dependencies": [{"name": "a", "skip_reason": "no"}]}', 0, "SKIPPED 1 of 1 packages were not looked up"),
        ("", 0, "SKIPPED the installed packages were not looked up: no network"),
    ],
)
def test_a_day_without_the_network_is_no_failure_of_the_audit(
    capsys: pytest.CaptureFixture[str], printed: str, code: int, told: str
) -> None:
    """It is said; a vulnerability that a newer version repairs is a failure."""
    program = f"import sys; print({printed!r}); sys.exit('no network')"
    assert audit_packages.main((sys.executable, "-c", program)) == code
    assert told in capsys.readouterr().out

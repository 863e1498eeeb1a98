"""Opens a file in Debian's Chromium and keeps what goes wrong there; every wait has a limit."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page


#: Pictures are one image to who reads the page by ear: their insides are `browser_charts`' part.
_CONTEXT = {"include": [["html"]], "exclude": [["svg > *"]]}

#: Levels A and AA of WCAG 2.0, 2.1 and 2.2, and what axe holds for good practice.
_TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]


def axe_violations(page: Page) -> list[str]:
    """Return rule, place and what is wrong, of the first places that break each rule."""
    from axe_playwright_python.sync_playwright import Axe  # type: ignore[import-untyped]

    options = {"resultTypes": ["violations"], "runOnly": {"type": "tag", "values": _TAGS}}
    found = Axe().run(page, context=_CONTEXT, options=options).response["violations"]
    return [f"{each['id']}: {node['target']}: {node['failureSummary']}" for each in found for node in each["nodes"][:3]]


#: What is asked for on the way; Debian's name, since playwright's own Chromium is a download from elsewhere.
_CHROMIUM = "chromium"
_INSTALL = "'make long-needs' installs it"
_LAUNCH_LIMIT_MS, _STEP_LIMIT_MS, _TEST_LIMIT_S = 60_000, 20_000, 180


#: Opens a file, as `_visited` does in the module's Chromium.
Visits = Callable[..., AbstractContextManager["Page"]]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Give a Chromium without a window; skips, with the one thing that is missing."""
    missing = [] if shutil.which(_CHROMIUM) else [_CHROMIUM]
    missing += [name for name in ("playwright", "axe_playwright_python") if find_spec(name) is None]
    if missing:
        pytest.skip(f"browser: there is no {missing[0]}; {_INSTALL}")
    from playwright.sync_api import sync_playwright

    as_root = ["--no-sandbox"] if os.geteuid() == 0 else []
    path = shutil.which(_CHROMIUM)
    with (
        sync_playwright() as playwright,
        playwright.chromium.launch(executable_path=path, args=as_root, timeout=_LAUNCH_LIMIT_MS) as opened,
    ):
        yield opened


@pytest.fixture
def visit(browser: Browser) -> Iterator[Visits]:
    with at_most(_TEST_LIMIT_S):
        yield partial(_visited, browser)


@contextmanager
def _visited(
    browser: Browser, path: Path, *, width: int = 1440, scheme: Any = "light", fragment: str = "", **settings: Any
) -> Iterator[Page]:
    """Give a file loaded, in a context of its own without a network; fails for all of it that nobody wants."""
    viewport: Any = {"width": width, "height": 844 if width < 800 else 800}
    address = path.resolve().as_uri()
    with browser.new_context(viewport=viewport, color_scheme=scheme, offline=True, **settings) as context:
        context.set_default_timeout(_STEP_LIMIT_MS)
        page = context.new_page()
        problems = _watch(page, address)
        page.goto(f"{address}{fragment}", wait_until="load")
        yield page
        assert not problems, problems


def _watch(page: Page, address: str) -> list[str]:
    """Note messages of the console, errors of scripts, requests and dialogs in the order in which they come."""
    problems: list[str] = []

    def refuse(route: Any) -> None:
        if route.request.url.partition("#")[0] == address:
            route.continue_()
        else:
            problems.append(f"asked for {route.request.url[:200]}")
            route.abort()

    def dismiss(dialog: Any) -> None:
        problems.append(f"opened a dialog: {dialog.message}")
        dialog.dismiss()

    def note(message: Any) -> None:
        if message.type in ("error", "warning", "assert"):
            problems.append(f"{message.type} on the console: {message.text}")

    page.route("**/*", refuse)
    page.on("dialog", dismiss)
    page.on("console", note)
    page.on("pageerror", lambda error: problems.append(f"a script failed: {error}"))
    return problems


@contextmanager
def at_most(seconds: int) -> Iterator[None]:
    """Raise TimeoutError where it takes longer: a page that hangs answers nothing, and playwright would wait."""

    def stop(*_: object) -> None:
        raise TimeoutError(f"no answer within {seconds} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)

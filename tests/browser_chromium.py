"""Opens a file in Debian's Chromium and keeps what goes wrong there; every wait has a limit."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
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
    from axe_playwright_python.sync_playwright import Axe

    options = {"resultTypes": ["violations"], "runOnly": {"type": "tag", "values": _TAGS}}
    found = Axe().run(page, context=_CONTEXT, options=options).response["violations"]
    return [f"{each['id']}: {node['target']}: {node['failureSummary']}" for each in found for node in each["nodes"][:3]]


#: What is asked for on the way; Debian's name, since playwright's own Chromium is a download from elsewhere.
_CHROMIUM = "chromium"
_INSTALL = "'make test-needs' installs it"
_LAUNCH_LIMIT_MS, _STEP_LIMIT_MS, _TEST_LIMIT_S = 60_000, 20_000, 180


@dataclass(kw_only=True)
class Visit:
    """A page that is open, and everything of it that nobody wants."""

    page: Page
    #: Messages of the console, errors of scripts, requests, dialogs: in the order in which they came.
    problems: list[str] = field(default_factory=list)


def skip_without_browser() -> None:
    """Skip the module that is being imported, with the one thing that is missing."""
    if obstacle := _obstacle():
        pytest.skip(f"browser: {obstacle}", allow_module_level=True)


def _obstacle() -> str | None:
    """Return why nothing can be opened here; None where it can."""
    if shutil.which(_CHROMIUM) is None:
        return f"there is no {_CHROMIUM}; {_INSTALL}"
    missing = [name for name in ("playwright", "axe_playwright_python") if find_spec(name) is None]
    return f"there is no {missing[0]}; {_INSTALL}" if missing else None


@contextmanager
def open_browser() -> Iterator[Browser]:
    """Give a Chromium without a window."""
    from playwright.sync_api import sync_playwright

    as_root = ["--no-sandbox"] if os.geteuid() == 0 else []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which(_CHROMIUM), args=as_root, timeout=_LAUNCH_LIMIT_MS
        )
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def visit(
    browser: Browser, path: Path, *, width: int = 1440, scheme: str = "light", fragment: str = "", **settings: Any
) -> Iterator[Visit]:
    """Open a file in a context of its own, which has no network, and give it loaded."""
    height = 844 if width < 800 else 800
    context = browser.new_context(
        viewport={"width": width, "height": height}, color_scheme=scheme, offline=True, **settings
    )
    context.set_default_timeout(_STEP_LIMIT_MS)
    seen = Visit(page=context.new_page())
    try:
        _watch(seen, path.resolve().as_uri())
        seen.page.goto(f"{path.resolve().as_uri()}{fragment}", wait_until="load")
        yield seen
    finally:
        context.close()


def _watch(seen: Visit, address: str) -> None:
    def refuse(route: Any) -> None:
        if route.request.url.partition("#")[0] == address:
            route.continue_()
        else:
            seen.problems.append(f"asked for {route.request.url[:200]}")
            route.abort()

    def dismiss(dialog: Any) -> None:
        seen.problems.append(f"opened a dialog: {dialog.message}")
        dialog.dismiss()

    def note(message: Any) -> None:
        if message.type in ("error", "warning", "assert"):
            seen.problems.append(f"{message.type} on the console: {message.text}")

    seen.page.route("**/*", refuse)
    seen.page.on("dialog", dismiss)
    seen.page.on("console", note)
    seen.page.on("pageerror", lambda error: seen.problems.append(f"a script failed: {error}"))


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


def the_browser() -> Iterator[Browser]:
    """Give the one browser of a module of tests; to be made a fixture there."""
    with open_browser() as opened:
        yield opened


def a_limit() -> Iterator[None]:
    """End a test whose page hangs; to be made a fixture."""
    with at_most(_TEST_LIMIT_S):
        yield

"""Takes pictures of a report for people to look at: first screen and whole page, both schemes, three widths, print."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

_LIMIT_MS = 60_000
#: Widths of a phone, a tablet and a desk.
_WIDTHS = (390, 820, 1280)
#: Chromium draws no picture that is higher than this.
_MAX_HEIGHT = 16_000


def main() -> None:
    """Open the report in Debian's Chromium in each combination, and write the pictures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("report", type=Path, help="the report, an HTML file")
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="FOLDER", help="where the pictures go")
    parser.add_argument("--widths", type=int, nargs="+", default=_WIDTHS, metavar="PIXELS", help="390 820 1280")
    parser.add_argument("--open", metavar="SELECTOR", help="details that are opened first, such as 'details'")
    options = parser.parse_args()
    chromium = shutil.which("chromium")
    if chromium is None:
        sys.exit("screenshots: there is no chromium; 'make test-needs' installs it")
    options.output.mkdir(parents=True, exist_ok=True)
    as_root = ["--no-sandbox"] if os.geteuid() == 0 else []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=as_root, timeout=_LIMIT_MS)
        for width in options.widths:
            for scheme in ("light", "dark"):
                _shoot(browser, options, width, scheme)
        browser.close()


def _shoot(browser: Browser, options: argparse.Namespace, width: int, scheme: str) -> None:
    context = browser.new_context(
        viewport={"width": width, "height": 844 if width < 800 else 800}, color_scheme=scheme, offline=True
    )
    context.set_default_timeout(_LIMIT_MS)
    page = context.new_page()
    page.goto(options.report.resolve().as_uri(), wait_until="load")
    if options.open:
        page.eval_on_selector_all(options.open, "all => all.forEach((each) => { each.open = true; })")
    name = options.output / f"{width}-{scheme}"
    page.screenshot(path=f"{name}-first.png")
    height = min(_MAX_HEIGHT, page.evaluate("document.documentElement.scrollHeight"))
    clip = {"x": 0, "y": 0, "width": width, "height": height}
    page.screenshot(path=f"{name}-whole.png", full_page=True, clip=clip)
    if width == max(options.widths):
        page.pdf(path=f"{name}-print.pdf", format="A4", print_background=False)
    context.close()


if __name__ == "__main__":
    main()

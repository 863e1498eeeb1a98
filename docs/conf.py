"""How Sphinx builds these pages; 'make docs' calls it. The pages are Markdown that reads on GitHub as it is."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

project = "perfsuite"
author = "the perfsuite developers"
copyright = author
release = re.search(r'^version = "(.+)"$', (ROOT / "pyproject.toml").read_text("utf-8"), re.MULTILINE)[1]

extensions = ["myst_parser"]
exclude_patterns = ["examples"]
nitpicky = True

#: Links to a heading are checked, down to the fourth level, by the names that GitHub gives them.
myst_heading_anchors = 4
myst_enable_extensions = ["colon_fence"]

html_theme = "furo"
html_title = f"perfsuite {release}"
html_copy_source = False
highlight_language = "text"

# 'tools/docs.sh --external' looks at links out of these pages; nothing else asks the network.
linkcheck_timeout = 20
linkcheck_retries = 2


def _name_files_outside(app, name, source):
    """Let a link to a file outside of docs/, which GitHub shows and this site has not, read as the file's name."""
    outside = "../" * (name.count("/") + 1)
    source[0] = re.sub(rf"\[([^\]]+)\]\({re.escape(outside)}([\w./-]+)[^)]*\)", r"\1 (`\2`)", source[0])


def setup(app):
    """Register the hook."""
    app.connect("source-read", _name_files_outside)

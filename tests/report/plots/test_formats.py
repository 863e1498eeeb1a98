"""The formats of pictures."""

from __future__ import annotations

from pathlib import Path

import pytest

from perfsuite.errors import PerfsuiteError
from perfsuite.report.plots.formats import format_of


def test_the_suffix_names_the_format() -> None:
    """In letters of either case."""
    assert format_of(Path("a/b.png")) == "png"
    assert format_of(Path("b.c.SVG")) == "svg"


@pytest.mark.parametrize(("name", "suffix"), [("a", "''"), ("a.pdf", "'.pdf'"), (".png", "''")])
def test_any_other_suffix_is_refused(name: str, suffix: str) -> None:
    """The error tells what is accepted."""
    with pytest.raises(PerfsuiteError, match=rf"^{name}: suffix is {suffix}, accepted are .png and .svg$"):
        format_of(Path(name))

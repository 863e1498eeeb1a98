"""Names of which paths are made."""

from __future__ import annotations

import pytest

from perfsuite.errors import BaselineError
from perfsuite.records.plain_names import plain_name


@pytest.mark.parametrize("name", ["host", "smollm2-135m-q8_0", "qwen1.5-moe-a2.7b-l2-q4_k", "_v..2", "9" * 200])
def test_a_name_that_is_one_part_of_a_path_is_taken(name: str) -> None:
    assert plain_name(name, "device", BaselineError) == name


@pytest.mark.parametrize("name", ["", ".", "..", "../x", "/x", "a/b", "a\\b", "a\0", "a\n", "-x", ".x", "9" * 201])
def test_a_name_that_leads_elsewhere_is_one_line(name: str) -> None:
    with pytest.raises(BaselineError, match=r"^run\.json: device is '.*, expected a plain name: letters, ") as caught:
        plain_name(name, "run.json: device", BaselineError)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 200

"""One farm for all tests here: each makes boards of a kind of its own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ...farm_daemons import Farm, running_farm


@pytest.fixture(scope="package")
def farm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Farm]:
    with running_farm(tmp_path_factory.mktemp("farm")) as running:
        yield running

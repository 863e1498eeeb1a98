from __future__ import annotations

import pytest

from perfsuite.errors import ArchitectureError
from perfsuite.workload.families import FAMILIES, family_of


def test_families_go_by_their_gguf_name() -> None:
    """Each family is found under the architecture name that its GGUF files carry."""
    assert all(family_of(name).gguf_architecture == name for name in FAMILIES)


def test_unknown_family_is_refused() -> None:
    """An unknown architecture name is refused with the supported ones."""
    with pytest.raises(ArchitectureError, match="'rwkv7' is not supported; supported are llama"):
        family_of("rwkv7")

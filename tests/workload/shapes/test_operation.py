"""Operations know their dimensions."""

from __future__ import annotations

import pytest

from perfsuite.workload.ggml_types import GGML_TYPES
from perfsuite.workload.shapes.operation import STORED_TYPES, Operation


@pytest.mark.parametrize("operation", Operation)
def test_inner_and_growing_dimensions_are_among_the_dimensions(operation: Operation) -> None:
    """What lies in rows and what a sweep runs over are two different dimensions of each operation."""
    assert operation.inner_dimension in operation.dimensions
    assert operation.growing_dimension in operation.dimensions
    assert operation.inner_dimension != operation.growing_dimension


def test_stored_types_are_ggml_types_from_wide_to_narrow() -> None:
    """Each stored type is one of ggml's, and none takes more bytes for a value than the one before."""
    types = [GGML_TYPES[name.upper()] for name in STORED_TYPES]
    widths = [each.block_bytes / each.block_values for each in types]
    assert widths == sorted(widths, reverse=True)

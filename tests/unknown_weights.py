"""A GGUF file of an architecture that the suite knows nothing of, for tests that run none."""

from __future__ import annotations

from pathlib import Path

import gguf
import numpy as np

#: What the file says that it is.
UNKNOWN = "unheard-of"


def write_unknown(path: Path) -> Path:
    """Write the file, which describes nothing but its name and one tensor; return its path."""
    writer = gguf.GGUFWriter(path, UNKNOWN)
    writer.add_tensor("token_embd.weight", np.zeros((32, 64), dtype=np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path

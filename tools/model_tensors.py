#!/usr/bin/env python
"""Ask the engine again for the tensors of the catalogue's models that are listed.

python tools/model_tensors.py [FILE ...]   ask about these files, or about all of them

What it changes is the section ``[tensors]`` at the end of a file.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from perfsuite.cli.kept_folders import user_cache
from perfsuite.errors import PerfsuiteError
from perfsuite.measure.model_tensors import with_engine_tensors
from perfsuite.workload.model_shape import read_spec
from perfsuite.workload.tensors import shortened

_FOLDER = Path(__file__).resolve().parents[1] / "perfsuite" / "workload" / "architectures"
_SECTION = "[tensors]\n"


def main(arguments: list[str]) -> int:
    """Write the files anew; return 1 where the engine makes no model of one."""
    paths = [Path(each) for each in arguments] or list(_FOLDER.glob("*/*.toml"))
    problems = [problem for path in sorted(paths) for problem in _ask_again(path)]
    print("\n".join(problems) or f"{len(paths)} files are as the engine has it")
    return 1 if problems else 0


def _ask_again(path: Path) -> Iterator[str]:
    spec = read_spec(path)
    shape = spec.shape(path.stem)
    try:
        asked = with_engine_tensors(shape, cache_dir=user_cache(), wanted=spec.wanted, unwanted=spec.unwanted)
    except PerfsuiteError as error:
        yield f"{path}: {error}"
        return
    above = path.read_text(encoding="utf-8").partition(_SECTION)[0].rstrip()
    rows = _rows(shortened(asked.tensors, shape.n_layers))
    path.write_text(f"{above}\n\n{_SECTION}{rows}", encoding="utf-8")


def _rows(tensors: Mapping[str, tuple[int, ...]]) -> str:
    return "".join(f'"{name}" = {list(ne)}\n' for name, ne in tensors.items())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

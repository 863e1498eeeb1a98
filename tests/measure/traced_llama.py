"""A process that runs llama.cpp and knows nothing of any recorder, for tests that trace it from outside."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from types import TracebackType

import pytest

from perfsuite.measure.engine import Engine

SOURCE = Path(__file__).parents[2] / "native" / "tests" / "traced_llama.c"


def build_traced_llama(engine: Engine, folder: Path, compiler_name: str = "cc") -> Path:
    """Compile the program into a folder, or skip where there is no compiler; it finds llama.cpp beside itself first."""
    compiler = shutil.which(compiler_name)
    if compiler is None:
        pytest.skip(f"no C compiler ({compiler_name}) on the PATH")
    program = folder / "traced_llama"
    library_dir = engine.library_dir
    libraries = [str(engine.library(name)) for name in ("libllama", "libggml", "libggml-base", "libggml-cpu")]
    paths = f"-Wl,--disable-new-dtags,-rpath,$ORIGIN:{library_dir},-rpath-link,{library_dir}"
    command = [compiler, *engine.include_flags, str(SOURCE), "-o", str(program), *libraries, paths]
    subprocess.run(command, check=True, timeout=120)
    return program


class TracedLlama:
    def __init__(self, program: Path, model: str | Path, *, n_threads: int = 2, user: int | None = None) -> None:
        command = [str(program), str(model), str(n_threads)]
        as_user = {} if user is None else {"user": user, "group": user, "extra_groups": []}
        self._process = subprocess.Popen(  # type: ignore[call-overload]
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, **as_user
        )
        self._answer("ready")

    def __enter__(self) -> TracedLlama:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.kill()

    @property
    def pid(self) -> int:
        return int(self._process.pid)

    def decode(self, n_tokens: int) -> None:
        self._ask(str(n_tokens))

    def prompt(self, n_tokens: int) -> None:
        self._ask(f"p{n_tokens}")

    def execute_anew(self) -> None:
        """Put another program in its place: the same from its beginning."""
        self._ask("x", "ready")

    def kill(self) -> None:
        self._process.kill()
        self._process.communicate(timeout=60)

    def _ask(self, line: str, answer: str = "done") -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()
        self._answer(answer)

    def _answer(self, expected: str) -> None:
        assert self._process.stdout is not None
        assert self._process.stdout.readline().strip() == expected

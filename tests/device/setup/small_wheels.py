"""Wheels of a few lines that stand for the suite and for llama.cpp, so that an installation takes seconds."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

#: What the small suite answers when it is asked.
ACCOUNT = {
    "suite_version": "0.1.0",
    "plan_schema": 2,
    "python_version": "3.11.2",
    "machine": "aarch64",
    "engine_build_id": "0123456789abcdef",
    "engine_problem": None,
}


def write_wheel(folder: Path, name: str, code: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}-1.0-py3-none-any.whl"
    info = f"{name}-1.0.dist-info"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(f"{name}.py", code)
        archive.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", "")
    return path


def request(folder: Path, *, digest: str = "d1", code: str | None = None, **changed: Any) -> dict[str, Any]:
    """Return what tells the installer to install a small suite below a folder."""
    answer = code if code is not None else f"print({json.dumps(json.dumps(ACCOUNT))})"
    wheel = write_wheel(folder / "incoming" / digest, "smallsuite", answer)
    engine = write_wheel(folder / "incoming" / "wheels", "smallengine", "")
    return {
        "device": "bench",
        "owner": {"user": "ann", "host": "desk", "run_id": f"setup-{folder}", "purpose": "a test"},
        "by": "ann from desk",
        "home": str(folder),
        "lock_folder": str(folder),
        "identity": {"digest": digest, "engine": "smallengine==1.0"},
        "wheel": str(wheel),
        "wheels": [engine.name],
        "wheel_dirs": [str(folder / "incoming" / "wheels")],
        "is_offline": True,
        "force": False,
        "least_free_bytes": 1,
        "limits_s": {"environment": 120.0, "engine": 120.0, "install": 120.0, "question": 60.0},
        "question": ["-m", "smallsuite"],
        **changed,
    }

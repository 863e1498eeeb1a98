"""Looks up the installed packages among known vulnerabilities, with pip-audit; it asks PyPI.

    .venv/bin/python tools/audit_packages.py

Exits with 1 where a package has a vulnerability that a newer version repairs. A day without the network is no failure:
one line says that nothing was looked up.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from typing import Any

COMMAND = ("-m", "pip_audit", "--local", "--skip-editable", "--format=json", "--progress-spinner=off")
LIMIT_S = 300.0


def main(command: Sequence[str] = (sys.executable, *COMMAND)) -> int:
    """Look, say what was found, and return the exit code."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, check=False)
        packages = json.loads(done.stdout)["dependencies"]
    except (OSError, subprocess.TimeoutExpired, ValueError, KeyError) as error:
        why = done.stderr.splitlines()[-1:] if isinstance(error, ValueError | KeyError) else [str(error)]
        print(f"SKIPPED the installed packages were not looked up: {''.join(why)[:200]}")
        return 0
    found = [(is_repaired, line) for package in packages for is_repaired, line in _lines(package)]
    unknown = [package["name"] for package in packages if "skip_reason" in package]
    if unknown:
        print(f"SKIPPED {len(unknown)} of {len(packages)} packages were not looked up, such as {unknown[0]}")
    print(*[line for _, line in found], f"audit: {len(packages)} packages, {len(found)} vulnerabilities", sep="\n")
    return int(any(is_repaired for is_repaired, _ in found))


def _lines(package: dict[str, Any]) -> Iterator[tuple[bool, str]]:
    for each in package.get("vulns", ()):
        repaired = ", ".join(each["fix_versions"])
        todo = f"repaired in {repaired}" if repaired else "no version repairs it yet"
        yield bool(repaired), f"audit: {package['name']} {package['version']}: {each['id']}; {todo}"


if __name__ == "__main__":
    sys.exit(main())

"""What the values of a plan mean for a night: models that are there, boards that are one device, options of its own."""

from __future__ import annotations

import re
from pathlib import Path

from perfsuite.device.profile import Profile
from perfsuite.errors import PerfsuiteError

#: What the night itself tells pytest.
_OWN = (
    "--device",
    "--model",
    "--scenario",
    "--perf-dir",
    "--perf-history",
    "--perf-wait",
    "--perf-address",
    "--junitxml",
    "--junit-xml",
    "--farm",
)

#: Begins like one of these, and is the plan's business.
_QUIET = "--perf-wait-quiet"


def refuse_unknown_model(model: str) -> None:
    """Refuse what pytest would refuse in each cell; a file is looked for, and not read.

    Raises
    ------
    PerfsuiteError
        There is no such file, or the name is none of the catalogue.
    """
    from perfsuite.workload.weights import resolve  # only a plan that is read needs the catalogue

    if not (model.endswith(".gguf") or "/" in model):
        resolve(model, cache_dir=Path())
    elif not Path(model).is_file():
        raise PerfsuiteError(f"{model}: there is no such file; a path is from the folder in which the night is begun")


def lane(profile: Profile) -> str:
    """Return what names the device itself, whatever its profiles are called: a user or the usual port make no other."""
    reach = profile.reach
    if reach.way == "local":
        return "local"
    return f"{reach.way} {reach.address.rpartition('@')[2].lower()} {reach.port or 22}"


def is_taken(word: str) -> bool:
    """Whether the night says this itself, or it would run several things at a time on a device."""
    name = word.split("=")[0]
    return (name.startswith(_OWN) and name != _QUIET) or re.match(r"-n|--dist|--numproc|--tx", word) is not None

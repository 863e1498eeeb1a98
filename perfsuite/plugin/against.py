"""``--against``, ``--against-model`` and ``--against-args``: the old side of a paired comparison."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from perfsuite.errors import PerfsuiteError, meant
from perfsuite.experiments.run_config import RunConfig
from perfsuite.option_table import AGAINST_ARGUMENTS
from perfsuite.workload.ggml_types import GGML_TYPES
from perfsuite.workload.weights import resolve

if TYPE_CHECKING:
    pass

#: What each option names, in words.
_KINDS = {"against": "build", "against_model": "model", "against_args": "settings"}

_FLAGS = {"1": True, "on": True, "0": False, "off": False}


def with_old_side(config: RunConfig, option: object, *, asks_board: bool = True) -> RunConfig:
    """Return the run with the old side that the options name, if they name one.

    A build is looked for on the board, unless that must not be asked, such as where cases are only listed.

    Raises pytest.UsageError: a value is not accepted, or what it names is missing or broken.
    """
    named = {name: getattr(option, f"perf_{name}") for name in _KINDS}
    given = {name: value for name, value in named.items() if value is not None}
    if not given:
        return config
    if config.baseline_mode == "record":
        raise pytest.UsageError("--baseline=record: pairs compare two sides and record neither; leave out --against")
    try:
        library_dir = named["against"] if asks_board else None
        old = _old_side(config, library_dir, named["against_model"], named["against_args"])
    except PerfsuiteError as error:
        raise pytest.UsageError(f"--{next(iter(given)).replace('_', '-')}: {error}") from None
    told = ", ".join(f"{_KINDS[name]} {value}" for name, value in given.items())
    return replace(config, old=replace(old, inject_op=None, inject_phases=()), old_text=told)


def _old_side(config: RunConfig, library_dir: str | None, model: str | None, arguments: str | None) -> RunConfig:
    old = config
    if library_dir is not None:
        engine = config.board.find_engine(Path(library_dir))
        old = replace(old, other_engine=engine, opencl=old.opencl and config.backend_of(engine))
    if model is not None:
        weights = resolve(model, cache_dir=config.cache_dir / "models")
        old = replace(old, workload=replace(old.workload, weights=weights))
    for argument in (arguments or "").split():
        old = _with_argument(old, argument)
    return old


def _with_argument(config: RunConfig, argument: str) -> RunConfig:
    name, _, text = argument.partition("=")
    read, change = _ARGUMENTS.get(name, (lambda _: None, None))
    value = read(text)
    if change is None or value is None:
        told = f"accepted are {AGAINST_ARGUMENTS}, separated by spaces{'' if change else meant(name, _ARGUMENTS)}"
        raise pytest.UsageError(f"--against-args={argument}: {told}")
    return change(config, value)


def _count(value: str) -> int | None:
    return int(value) if value.isdecimal() and int(value) > 0 else None


def _type(value: str) -> str | None:
    return value.lower() if value.upper() in GGML_TYPES else None


def _with_setting(config: RunConfig, name: str, value: Any) -> RunConfig:
    workload = config.workload
    return replace(config, workload=replace(workload, settings=replace(workload.settings, **{name: value})))


#: By argument: how its value is read, None where it is none, and what it changes.
_ARGUMENTS: dict[str, tuple[Callable[[str], Any], Callable[[RunConfig, Any], RunConfig]]] = {
    "threads": (_count, lambda config, n: replace(config, asked_threads=n)),
    "ubatch": (_count, lambda config, n: replace(config, workload=replace(config.workload, n_ubatch=n))),
    "flash_attn": (_FLAGS.get, lambda config, flag: _with_setting(config, "flash_attn", flag)),
    "type_k": (_type, lambda config, type: _with_setting(config, "type_k", type)),
    "type_v": (_type, lambda config, type: _with_setting(config, "type_v", type)),
}

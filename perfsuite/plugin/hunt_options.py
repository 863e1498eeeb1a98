"""``--perf-shapes`` and the options that go with it, turned into one frozen `HuntRequest`."""

from __future__ import annotations

import argparse
import random
from pathlib import Path
from typing import TypeVar

import pytest

from perfsuite.errors import ShapeError, lack_of
from perfsuite.experiments.shapes.bounds import Bounds, bounds_of, kv_heads_within, parse_bounds
from perfsuite.experiments.shapes.request import HuntRequest
from perfsuite.measure.environment import environment_opencl_vendors
from perfsuite.measure.kernel_runtime import lack_of_driver
from perfsuite.option_table import DEFAULT_SHAPE_PROFILE
from perfsuite.plugin.registration import given_options, usable_name
from perfsuite.plugin.values import asked_names
from perfsuite.workload.shapes.operation_shape import STORED_TYPES, Operation
from perfsuite.workload.shapes.shape_case import Subject

_NAME = "--perf-shapes"

#: What Hypothesis' own plugin calls the value of its option ``--hypothesis-seed``.
_SEED = "hypothesis_seed"

_Choice = TypeVar("_Choice", Operation, Subject)


def asked_hunts(config: pytest.Config) -> HuntRequest:
    """Return what the options ask for, and let Hypothesis draw with its seed.

    Raises pytest.UsageError: a value is not accepted, or an option makes no sense with or without another.
    """
    option = config.option
    _refuse(lack_of("hypothesis"), option.perf_shapes)
    subjects = _chosen("--perf-shape-subjects", option.perf_shape_subjects or Subject.TILED.value, Subject)
    operations = _chosen(_NAME, option.perf_shapes, Operation)
    request = HuntRequest(
        operations=operations,
        subjects=subjects,
        types=_types(option.perf_shape_types),
        bounds=_bounds(option.perf_shape_bounds, operations),
        kernels_dir=_kernels_dir(option.perf_kernels, subjects),
        profile=option.perf_shape_profile or DEFAULT_SHAPE_PROFILE,
        seed=_seed(option),
        given=(f"{usable_name(config, '--device')}={option.perf_device}", *given_options(config)),
    )
    _refuse_nothing_to_draw(request)
    return request


def refuse_without_opencl(request: HuntRequest) -> None:
    """Refuse hunts in OpenCL's kernels on this machine where no driver is installed.

    Raises pytest.UsageError: none is.
    """
    if {Subject.TILED, Subject.GGML_OPENCL} & set(request.subjects):
        _refuse(lack_of_driver(environment_opencl_vendors()), ",".join(each.value for each in request.operations))


def _refuse(lack: str | None, asked: str) -> None:
    if lack:
        raise pytest.UsageError(f"{_NAME}={asked}: {lack}")


def _chosen(name: str, text: str, kind: type[_Choice]) -> tuple[_Choice, ...]:
    return tuple(kind(each) for each in asked_names(name, text, [each.value for each in kind]))


def _types(text: str | None) -> tuple[str, ...]:
    if text is None:
        return STORED_TYPES
    names = asked_names("--perf-shape-types", text.lower(), STORED_TYPES, has_all=False)
    return tuple(each for each in STORED_TYPES if each in names)


def _bounds(text: str | None, operations: tuple[Operation, ...]) -> Bounds:
    try:
        return {} if text is None else parse_bounds(text, operations)
    except ShapeError as error:
        raise pytest.UsageError(f"--perf-shape-bounds={error}") from None


def _kernels_dir(text: str | None, subjects: tuple[Subject, ...]) -> Path | None:
    if text is None:
        return None
    if Subject.TILED not in subjects:
        raise pytest.UsageError(f"--perf-kernels={text}: sources of {Subject.TILED.value}, which is not a subject here")
    directory = Path(text).absolute()
    if not (directory / "tiled.cl").is_file():
        raise pytest.UsageError(f"--perf-kernels={text}: no tiled.cl there; expected a copy of the suite's kernels")
    return directory


def _seed(option: argparse.Namespace) -> str:
    """Return Hypothesis' seed, drawn and set where none was given: its plugin is configured after this one."""
    if not hasattr(option, _SEED):
        raise pytest.UsageError(f"{_NAME}: needs Hypothesis' own plugin; leave out '-p no:hypothesispytest'")
    given: str | None = getattr(option, _SEED)
    seed = str(random.SystemRandom().randrange(2**32)) if given is None else given
    setattr(option, _SEED, seed)
    return seed


def _refuse_nothing_to_draw(request: HuntRequest) -> None:
    if Operation.ATTENTION in request.operations and not kv_heads_within(
        bounds_of(Operation.ATTENTION, request.bounds)
    ):
        raise pytest.UsageError(f"{_NAME}: attention has no heads within its bounds that are a multiple of kvheads")
    for operation in request.operations:
        if not request.types_of(operation):
            inner = operation.inner_dimension
            raise pytest.UsageError(
                f"{_NAME}: {operation.value} has no {inner} within its bounds that is in whole blocks of "
                f"{', '.join(request.types)}"
            )

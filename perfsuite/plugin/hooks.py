"""What pytest calls until the tests have run: options, the choice of cases, the measurement before the tests."""

from __future__ import annotations

import sys
from collections.abc import Generator
from contextlib import suppress
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path

import pytest

from perfsuite.errors import LinkError, PerfsuiteError
from perfsuite.measure.board.naming import board_name
from perfsuite.measure.board.protocol import Board
from perfsuite.plugin.against import add_against_options, with_old_side
from perfsuite.plugin.board_options import is_to_measure
from perfsuite.plugin.fixtures import SESSION_KEY, Perf
from perfsuite.plugin.margins import MARKER_LINE, marker_margin
from perfsuite.plugin.options import RunConfig, add_options, resolve_config
from perfsuite.plugin.origin import GROUP
from perfsuite.plugin.run_signals import end_on_signals
from perfsuite.plugin.session import PerfSession, open_session
from perfsuite.plugin.shapes.hunt_options import HuntRequest, refuse_without_device

#: The kind of case that each argument of a case function stands for.
CASE_KINDS = {
    "phase_case": "phase",
    "operator_case": "operator",
    "kernel_case": "kernel",
    "engine_kernel_case": "engine_kernel",
    "roofline_case": "roofline",
    "fidelity_case": "fidelity",
    "overhead_case": "overhead",
    "trace_case": "trace",
    "shape_kept": "shape-kept",
    "shape_hunt": "shape-hunt",
}

#: The file of the cases of ``--perf-shapes``, whose import brings Hypothesis.
_SHAPES_FILE = "test_shapes.py"

#: The argument of a test of statements about sweeps.
_STATEMENT = "roofline_statement"

#: The arguments that get cases or statements.
_PARAMETERS = (*CASE_KINDS, _STATEMENT)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Register the options."""
    add_options(parser)
    add_against_options(parser.getgroup(GROUP))


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Resolve the options, and run the shipped cases unless paths were given."""
    config.addinivalue_line("markers", MARKER_LINE)
    if not config.getoption("--device"):
        refuse_without_device(config.option)
        return
    if hasattr(config, "workerinput"):
        return
    _refuse_xdist(config)
    if is_to_measure(config.option):
        end_on_signals(config)
    run = resolve_config(config)
    asks_board = run.board.is_local or is_to_measure(config.option)
    try:
        if is_to_measure(config.option):
            config.add_cleanup(partial(_let_go, run.board))
            run.board.open()
            run = _on_its_board(run)
        run = with_old_side(run, config.option, asks_board=asks_board)
        run.run_dir.mkdir(parents=True, exist_ok=True)
        config.stash[SESSION_KEY] = open_session(run, asks_board=asks_board)
    except OSError as error:
        raise pytest.UsageError(f"{run.run_dir}: cannot be written ({error.strerror}); choose --perf-dir") from None
    except PerfsuiteError as error:
        raise pytest.UsageError(str(error)) from None
    config.add_cleanup(config.stash[SESSION_KEY].close)
    if run.shapes is not None:
        _prepare_hunts(run.shapes)
    if config.args_source is not pytest.Config.ArgsSource.ARGS:
        config.args[:] = [str(_cases_dir())]
    _quieten_benchmark(config)


def pytest_report_header(config: pytest.Config) -> list[str]:
    """Say what is measured on what."""
    session = config.stash.get(SESSION_KEY, None)
    if session is None:
        return []
    run = session.config
    if not (run.board.is_local or is_to_measure(config.option)):
        return [f"perfsuite: device {run.profile.name}, which is not asked; {run.workload.prefix}"]
    facts = run.board.facts()
    host = facts.fingerprint
    where = "" if run.board.is_local else f" (board {facts.identity}, {facts.hostname})"
    return [
        f"perfsuite: device {run.profile.name}{where}: {host['soc']}, {host['n_cores']} cores, "
        f"governor {host['governor']}, load {facts.load_average:.2f}",
        *(f"perfsuite: {note}" for note in run.board.held().notes),
        f"perfsuite: {run.workload.prefix}, {run.n_threads} threads, backend {run.backend}, "
        f"llama.cpp build {run.engine.build_id}, {_compared_with(run)}",
        *([] if run.old else [f"perfsuite: forecasts from {session.forecasts.description}"]),
        *([] if run.shapes is None else [f"perfsuite: {run.shapes.told}"]),
    ]


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out the file of the hunts where none was asked for."""
    if collection_path.name != _SHAPES_FILE or collection_path.parent != _cases_dir():
        return None
    session = config.stash.get(SESSION_KEY, None)
    return None if session is not None and session.config.shapes is not None else True


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Give each case function the cases of its kind."""
    session = metafunc.config.stash.get(SESSION_KEY, None)
    for argument, kind in CASE_KINDS.items():
        if argument in metafunc.fixturenames:
            ids = [] if session is None else [each.case_id for each in session.cases.values() if each.kind == kind]
            metafunc.parametrize(argument, ids, ids=ids)
    if _STATEMENT in metafunc.fixturenames:
        names = [] if session is None else list(session.enumerated.sweeps.statements())
        metafunc.parametrize(_STATEMENT, names, ids=names)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Refuse wrong markers before anything is measured, and leave out tests of kinds that the run has no case of."""
    if SESSION_KEY not in config.stash:
        return
    for item in items:
        marker_margin(item)
    empty = [item for item in items if _is_empty(item)]
    if empty:
        config.hook.pytest_deselected(items=empty)
        items[:] = [item for item in items if item not in empty]


def _is_empty(item: pytest.Item) -> bool:
    """Whether pytest made this item only to skip it: its parameter has no case."""
    parameters = item.callspec.params if hasattr(item, "callspec") else {}
    return any(name in _PARAMETERS and not isinstance(value, str) for name, value in parameters.items())


@pytest.hookimpl(wrapper=True)
def pytest_runtestloop(session: pytest.Session) -> Generator[None, object, object]:
    """Measure everything that was selected, once, before the first test."""
    perf = session.config.stash.get(SESSION_KEY, None)
    if perf is not None and not session.config.option.collectonly:
        _measure(perf, session)
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Generator[None, object, object]:
    """Let a hunt end in one verdict on all its shapes, whatever Hypothesis raises on them."""
    case_id = pyfuncitem.callspec.params.get("shape_hunt") if hasattr(pyfuncitem, "callspec") else None
    if not isinstance(case_id, str) or SESSION_KEY not in pyfuncitem.config.stash:
        return (yield)
    from hypothesis.errors import Unsatisfiable  # loaded by the test

    from perfsuite.plugin.shapes.hunt import ShapeFailure

    with suppress(ShapeFailure, Unsatisfiable):
        yield
    perf = pyfuncitem.funcargs["perf"]
    assert isinstance(perf, Perf)
    perf.conclude_hunt(case_id)
    return True


def _on_its_board(run: RunConfig) -> RunConfig:
    """Return the run with the name of its board, which is known now."""
    return replace(run, origin=replace(run.origin, board=board_name(run.board)))


def _let_go(board: Board) -> None:
    """Give the device back where nothing else has; nobody reads the run's errors any more."""
    try:
        board.close()
    except PerfsuiteError as error:
        print(f"perfsuite: error: {error}", file=sys.stderr, flush=True)


def _compared_with(run: RunConfig) -> str:
    if run.old is not None:
        return f"in pairs against {run.old_text}, budget {run.budget_s:g} s; kernels are left out"
    return f"{run.n_replicates} replicates, baselines {run.baseline_mode}"


def _measure(perf: PerfSession, session: pytest.Session) -> None:
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    selected = {
        str(value): marker_margin(item)
        for item in session.items
        if hasattr(item, "callspec")
        for name, value in item.callspec.params.items()
        if name in _PARAMETERS
    }
    try:
        perf.measure(selected, reporter)
    except LinkError as error:
        perf.errors["link"] = str(error)
        pytest.exit("the link to the device was lost")
    except PerfsuiteError as error:
        raise pytest.UsageError(str(error)) from None


def _prepare_hunts(request: HuntRequest) -> None:
    """Let the hunts have the profile's settings; they are imported later, when they are collected."""
    from perfsuite.plugin.shapes.profiles import register_profile  # brings Hypothesis

    register_profile(request.budget)


def _refuse_xdist(config: pytest.Config) -> None:
    n_processes = getattr(config.option, "numprocesses", None)
    distribution = getattr(config.option, "dist", "no")
    if n_processes or distribution != "no" or getattr(config.option, "tx", None):
        raise pytest.UsageError(
            "--device measures one thing at a time on a device: run it without xdist's -n or --dist"
        )


def _quieten_benchmark(config: pytest.Config) -> None:
    """Leave out pytest-benchmark's own table of all cases, unless something was asked of it."""
    option = config.option
    asked = ("benchmark_compare", "benchmark_histogram", "benchmark_verbose", "benchmark_only")
    if hasattr(option, "benchmark_quiet") and not any(getattr(option, name, None) for name in asked):
        option.benchmark_quiet = True


def _cases_dir() -> Path:
    spec = find_spec("perfsuite.cases")
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent

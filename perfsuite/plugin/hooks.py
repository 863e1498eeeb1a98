"""What pytest calls until the tests have run: options, the choice of cases, the measurement before the tests."""

from __future__ import annotations

import argparse
import errno
import os
import signal
import sys
from collections.abc import Generator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from perfsuite.device.end_requests import EndRequests, requests_heard
from perfsuite.errors import LinkError, PerfsuiteError
from perfsuite.experiments.run_config import RunConfig
from perfsuite.experiments.session import PerfSession, open_session
from perfsuite.measure.board.protocol import Board, board_name
from perfsuite.plugin.against import with_old_side
from perfsuite.plugin.board_options import is_to_measure, lists_by_board
from perfsuite.plugin.fixtures import SESSION_KEY, Perf
from perfsuite.plugin.options import on_backend, resolve_config
from perfsuite.plugin.parameters import BROUGHT, CASE_KINDS, NO_CASE, PARAMETERS, STATEMENT, cases_dir
from perfsuite.plugin.values import marker_margin

_REQUESTS_KEY = pytest.StashKey[EndRequests]()


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Resolve the options, and run the shipped cases unless paths were given."""
    if hasattr(config, "workerinput"):
        return
    _refuse_xdist(config)
    if is_to_measure(config.option):
        _end_on_requests(config)
    run = resolve_config(config)
    is_opened = is_to_measure(config.option) or (not run.board.is_local and lists_by_board(config.option))
    asks_board = run.board.is_local or is_opened
    try:
        # Whoever waits for a device hears of a mistake first; what lies on a board is looked for when that is had.
        compared = with_old_side(run, config.option, asks_board=run.board.is_local)
        _refuse_unwritable_folders(run)
        if is_opened:
            config.add_cleanup(partial(_let_go, run.board))
            run.board.open()
            run = _on_its_board(run, config.option)
        if run.board.is_local:
            run = replace(compared, origin=run.origin)
        else:
            run = with_old_side(run, config.option, asks_board=asks_board)
        run.run_dir.mkdir(parents=True, exist_ok=True)
        config.stash[SESSION_KEY] = open_session(run, asks_board=asks_board, is_measured=is_to_measure(config.option))
    except OSError as error:
        raise pytest.UsageError(f"{run.run_dir}: cannot be written ({error.strerror}); choose --perf-dir") from None
    except PerfsuiteError as error:
        raise pytest.UsageError(str(error)) from None
    config.add_cleanup(config.stash[SESSION_KEY].close)
    if run.shapes is not None:
        from perfsuite.experiments.shapes.hunt import register_profile  # brings Hypothesis

        register_profile(run.shapes.budget)  # hunts are imported later, when they are collected
    if config.args_source is not pytest.Config.ArgsSource.ARGS:
        config.args[:] = [str(cases_dir())]


def _end_on_requests(config: pytest.Config) -> None:
    """Let a request to end be Ctrl-C for pytest, until it has cleaned up: what was measured is kept."""
    heard = ExitStack()
    config.add_cleanup(heard.close)  # the first to be added is the last to be done
    as_interrupt = requests_heard(lambda number: KeyboardInterrupt(signal.Signals(number).name))
    config.stash[_REQUESTS_KEY] = heard.enter_context(as_interrupt)


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Be in the end: a first request changes nothing while files are written and the device is restored."""
    if (requests := session.config.stash.get(_REQUESTS_KEY, None)) is not None:
        requests.is_ending = True


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
        *(f"perfsuite: {note}" for note in run.graph_notes),
        *([] if run.is_against else [f"perfsuite: forecasts from {session.forecasts.description}"]),
        *(f"perfsuite: left out: {name}: {lack}" for name, lack in run.left_out.items()),
        *([] if run.shapes is None else [f"perfsuite: {run.shapes.told}"]),
    ]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Give each case function the cases of its kind."""
    session = metafunc.config.stash.get(SESSION_KEY, None)
    for argument in set(PARAMETERS) & set(metafunc.fixturenames):
        names = [] if session is None else _names(session, argument)
        metafunc.parametrize(argument, [pytest.param(name, id=name) for name in names] or NO_CASE)


def _names(session: PerfSession, argument: str) -> Sequence[str]:
    """Return the cases or statements that an argument of a function stands for."""
    if argument == STATEMENT:
        return [name for each in session.experiments for name in each.statements()]
    arguments = {kind: name for name, kind in CASE_KINDS.items()}
    return [each.case_id for each in session.cases.values() if arguments.get(each.kind, BROUGHT) == argument]


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Refuse wrong markers before anything is measured, and leave out tests of kinds that the run has no case of."""
    if SESSION_KEY not in config.stash:
        return
    for item in items:
        marker_margin(item)
    if empty := [item for item in items if _is_empty(item)]:
        config.hook.pytest_deselected(items=empty)
        items[:] = [item for item in items if not _is_empty(item)]


def _is_empty(item: pytest.Item) -> bool:
    """Whether the parameter of an item has no case."""
    parameters = item.callspec.params if hasattr(item, "callspec") else {}
    return any(name in PARAMETERS and not isinstance(value, str) for name, value in parameters.items())


@pytest.hookimpl(wrapper=True)
def pytest_runtestloop(session: pytest.Session) -> Generator[None, object, object]:
    """Measure everything that was selected, once, before the first test."""
    perf = session.config.stash.get(SESSION_KEY, None)
    if perf is not None and is_to_measure(session.config.option):
        _measure(perf, session)
        if perf.config.is_planned:
            session.items.clear()  # nothing was measured that a test could judge
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Generator[None, object, object]:
    """Let a hunt end in one verdict on all its shapes, whatever Hypothesis raises on them."""
    case_id = pyfuncitem.callspec.params.get("shape_hunt") if hasattr(pyfuncitem, "callspec") else None
    if not isinstance(case_id, str) or SESSION_KEY not in pyfuncitem.config.stash:
        return (yield)
    from hypothesis.errors import Unsatisfiable  # loaded by the test

    from perfsuite.experiments.shapes.hunt import ShapeFailure

    with suppress(ShapeFailure, Unsatisfiable):
        yield
    perf = pyfuncitem.funcargs["perf"]
    assert isinstance(perf, Perf)
    perf.conclude_hunt(case_id)
    return True


def _refuse_unwritable_folders(run: RunConfig) -> None:
    """Refuse folders into which the run will write in the end, before anything is waited for or measured.

    Raises pytest.UsageError: it names the option, the folder and why.
    """
    folders = {"--perf-dir": run.run_dir, "--baseline-dir": run.baseline_dir if run.baseline_mode == "record" else None}
    for option, folder in folders.items():
        if folder is not None:
            try:
                _refuse_unwritable(folder)
            except OSError as error:
                told = f"cannot be written ({error.strerror}); choose {option}"
                raise pytest.UsageError(f"{folder}: {told}") from None


def _refuse_unwritable(folder: Path) -> None:
    """Raise an OSError where a folder is neither there nor can be made; nothing is made."""
    nearest = next(place for place in (folder, *folder.parents) if place.exists())
    if not nearest.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
    if not os.access(nearest, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))


def _on_its_board(run: RunConfig, option: argparse.Namespace) -> RunConfig:
    """Return the run with the name of its board, which is known now, and the OpenCL backend that is there."""
    run = replace(run, origin=replace(run.origin, board=board_name(run.board)))
    return run if run.board.is_local else on_backend(run, option)


def _let_go(board: Board) -> None:
    """Give the device back where nothing else has; nobody reads the run's errors any more."""
    try:
        board.close()
    except PerfsuiteError as error:
        print(f"perfsuite: error: {error}", file=sys.stderr, flush=True)


def _compared_with(run: RunConfig) -> str:
    if run.is_against:
        return f"in pairs against {run.old_text}, budget {run.budget_s:g} s; kernels are left out"
    if run.old is not None:
        return f"in pairs against {run.old_text}, budget {run.budget_s:g} s"
    return f"{run.n_replicates} replicates, baselines {run.baseline_mode}"


def _measure(perf: PerfSession, session: pytest.Session) -> None:
    is_quiet = session.config.get_verbosity() < 0
    reporter = None if is_quiet else session.config.pluginmanager.get_plugin("terminalreporter")
    selected = {
        str(value): marker_margin(item)
        for item in session.items
        if hasattr(item, "callspec")
        for name, value in item.callspec.params.items()
        if name in PARAMETERS
    }
    try:
        perf.measure(selected, reporter)
    except LinkError as error:
        perf.errors["link"] = str(error)
        pytest.exit("the link to the device was lost")
    except PerfsuiteError as error:
        raise pytest.UsageError(str(error)) from None
    if perf.config.is_planned and (lacking := {**perf.errors, **perf.measured.absences}):
        told = "; ".join(f"{name}: {why}" for name, why in lacking.items())
        raise pytest.UsageError(f"this run cannot be planned: {told}")


def _refuse_xdist(config: pytest.Config) -> None:
    n_processes = getattr(config.option, "numprocesses", None)
    distribution = getattr(config.option, "dist", "no")
    if n_processes or distribution != "no" or getattr(config.option, "tx", None):
        raise pytest.UsageError(
            "--device measures one thing at a time on a device: run it without xdist's -n or --dist"
        )

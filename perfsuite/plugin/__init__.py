"""The pytest plugin; pytest finds the hooks and fixtures here."""

from perfsuite.device.held_signals import signals_held_off

with signals_held_off():  # libraries that are imported here start threads
    from perfsuite.plugin.fixtures import perf
    from perfsuite.plugin.hooks import (
        pytest_addoption,
        pytest_collection_modifyitems,
        pytest_configure,
        pytest_generate_tests,
        pytest_ignore_collect,
        pytest_pyfunc_call,
        pytest_report_header,
        pytest_runtestloop,
    )
    from perfsuite.plugin.run_end import pytest_sessionfinish, pytest_terminal_summary
    from perfsuite.plugin.statuses import pytest_report_teststatus, pytest_runtest_makereport

__all__ = [
    "perf",
    "pytest_addoption",
    "pytest_collection_modifyitems",
    "pytest_configure",
    "pytest_generate_tests",
    "pytest_ignore_collect",
    "pytest_pyfunc_call",
    "pytest_report_header",
    "pytest_report_teststatus",
    "pytest_runtest_makereport",
    "pytest_runtestloop",
    "pytest_sessionfinish",
    "pytest_terminal_summary",
]

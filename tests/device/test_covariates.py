"""What may explain a run and does not identify it."""

from __future__ import annotations

from types import SimpleNamespace

import psutil
import pytest

from perfsuite.device.covariates import host_covariates


def _raising(*_: object) -> None:
    raise NotImplementedError


def test_a_machine_that_tells_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    """The load of the last minute, the mean clock, and the hottest sensor are told."""
    readings = {"cpu": [SimpleNamespace(current=50.0), SimpleNamespace(current=61.5)], "disk": []}
    monkeypatch.setattr("os.getloadavg", lambda: (0.51234, 9.0, 9.0))
    monkeypatch.setattr(psutil, "cpu_freq", lambda: SimpleNamespace(current=2400.04))
    monkeypatch.setattr(psutil, "sensors_temperatures", lambda: readings, raising=False)
    assert host_covariates() == {"load_average": 0.512, "cpu_mhz": 2400.0, "temperature_celsius": 61.5}


@pytest.mark.parametrize("frequency", [lambda: None, lambda: SimpleNamespace(current=0.0), _raising])
def test_what_a_machine_does_not_tell_is_none(monkeypatch: pytest.MonkeyPatch, frequency: object) -> None:
    """A virtual machine without sensors has no temperature and maybe no clock, never a 0."""
    monkeypatch.setattr(psutil, "cpu_freq", frequency)
    monkeypatch.delattr(psutil, "sensors_temperatures", raising=False)
    found = host_covariates()
    assert found["cpu_mhz"] is found["temperature_celsius"] is None


def test_sensors_that_fail_are_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """A sensor that cannot be read is no reason to stop."""

    def failing() -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(psutil, "sensors_temperatures", failing, raising=False)
    assert host_covariates()["temperature_celsius"] is None

"""Runs of the plugin on a device whose workers are replaced."""

from __future__ import annotations

from tests.fake_device import fake_device, fake_opencl, real_outputs, runs, without_engines

__all__ = ["fake_device", "fake_opencl", "real_outputs", "runs", "without_engines"]

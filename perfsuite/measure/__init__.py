"""Runs workloads in fresh worker processes on the device and returns records."""

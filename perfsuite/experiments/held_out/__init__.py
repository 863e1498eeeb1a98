"""Forecasts against measurements that the calibration never saw."""

"""Forecasts of time from a calibration: single operators, and what the engine makes of them."""

"""Forecasts of what runs beside a model alone, against measurements beside a plain run."""

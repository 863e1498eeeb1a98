"""Measured rooflines: what is run for them, and what they show."""

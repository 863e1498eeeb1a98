"""Turns records into operators, phases and samples."""

"""Judging operations by their shapes: properties that hold at every shape, sweeps over one dimension, policies."""

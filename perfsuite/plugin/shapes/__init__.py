"""Hunts over shapes: Hypothesis draws shapes of an operation, and properties that hold at every shape are judged."""

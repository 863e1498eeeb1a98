"""Counted work: a model's scenario on a pinned build under the counting tool, against what was committed."""

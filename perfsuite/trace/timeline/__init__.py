"""Everything in a trace on one clock: tracks, arrows, counters, and what was pre-empted."""

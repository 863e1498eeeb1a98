"""How routed experts are reused, from the trace of a run."""

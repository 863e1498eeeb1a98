"""The graph of operators: what waits for what, and what that costs."""

"""The standard performance cases, which run with ``pytest --device=NAME``."""

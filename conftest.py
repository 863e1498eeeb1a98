"""Settings of pytest for the whole checkout; the suite's own tests have theirs in tests/conftest.py."""

#: What is built is not collected.
collect_ignore = ["build", "dist"]

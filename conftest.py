"""Settings of the suite's own tests; ``pytester`` runs pytest within pytest."""

pytest_plugins = ["pytester"]

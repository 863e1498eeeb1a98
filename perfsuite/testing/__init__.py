"""Made-up recordings, for tests of what reads them: the suite's own and those of programs built on it."""

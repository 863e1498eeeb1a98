"""A night: every cell of a matrix of boards, models and scenarios is a run of pytest, and all end in one answer."""

"""Operators as pure functions: what each computes and moves, with its formula and source."""

"""Runs that are recorded by operator and thread: what a trace shows, how recorders agree, and the command."""

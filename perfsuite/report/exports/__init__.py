"""Runs in the formats of other tools: each module makes the text of one format, and writes nothing."""

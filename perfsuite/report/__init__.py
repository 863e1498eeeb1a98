"""Tells people and machines what came out."""

"""Joins physics, stored baselines and pairs into an outcome."""

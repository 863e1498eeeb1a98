"""Boards of a farm: one that is free is borrowed through labgrid for a run, and given back whatever becomes of it.

labgrid's coordinator keeps the places (boards), their tags, reservations and locks; nothing here schedules anything.
"""

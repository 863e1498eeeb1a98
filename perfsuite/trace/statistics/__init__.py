"""A trace in figures: across tokens, by type of operator, by thread."""

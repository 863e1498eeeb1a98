"""The statistics view: words, tables, pictures, JSON."""

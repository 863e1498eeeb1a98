"""The graph view: words, tables, pictures, files."""

"""The timeline view: words, tables, Perfetto's files."""

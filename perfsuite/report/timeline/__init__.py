"""The timeline view: words, tables, files of Chrome's and Perfetto's formats."""

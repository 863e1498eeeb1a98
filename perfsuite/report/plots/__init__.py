"""Charts drawn with matplotlib, without its global state: one module a kind of chart.

All but :mod:`perfsuite.report.plots.formats` import matplotlib, so they are imported where a picture is drawn.
"""

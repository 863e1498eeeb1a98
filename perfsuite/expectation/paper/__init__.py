"""LIFE's own composition (``conventions="paper"``): passes and tables as the paper counts them, not as an engine runs.

The conventions are recovered from the printed tables. They hold for a generic Llama template; what llama.cpp computes
and moves is :mod:`perfsuite.expectation.graph`. Formulas that the paper states are in the operators of
:mod:`perfsuite.expectation`; here is what its totals need beside them.
"""

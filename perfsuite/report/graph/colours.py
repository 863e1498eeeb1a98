"""One scale of colours for all operators of a picture, from pale for little to dark for much, in grey as well."""

from __future__ import annotations

from collections.abc import Sequence

import matplotlib
from matplotlib.colors import Normalize, PowerNorm, to_hex

from perfsuite.errors import PerfsuiteError
from perfsuite.report.graph.view import BANDWIDTH, GraphView

#: Evenly darker, and told apart by people of any colour vision. *Source*: Nuñez, Anderton and Renslow, Optimizing
#: colormaps with consideration for color vision deficiency, PLOS ONE 13 (7), 2018.
COLOUR_MAP = matplotlib.colormaps["cividis_r"]
#: What has no value: folded layers, and what was not measured.
PLAIN = "#FFFFFF"
#: One operator may take most of the time: shares are told apart by their square roots.
_EXPONENT = 0.5


def scale_of(views: Sequence[GraphView]) -> Normalize:
    """Return the scale from 0 to the largest value that is drawn.

    Raises PerfsuiteError where the graphs do not tell the same of their operators.
    """
    metrics = list(dict.fromkeys(view.metric for view in views))
    if len(metrics) != 1:
        raise PerfsuiteError(f"graphs side by side: metrics are {', '.join(metrics) or 'none'}, expected one for all")
    values = [node.value for view in views for node in view.nodes if node.value is not None]
    most = max(values, default=0.0) or 1.0
    return Normalize(0.0, most) if metrics == [BANDWIDTH] else PowerNorm(_EXPONENT, 0.0, most)


def colour_of(value: float | None, scale: Normalize) -> str:
    """Return the colour of a value as #RRGGBB."""
    return PLAIN if value is None else to_hex(COLOUR_MAP(float(scale(value))))

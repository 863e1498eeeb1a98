"""A plugin of pytest for runs of the tests: what is waited for takes seconds, as ``-p tests.quick_links``.

Nothing else of such a run is another than with a user's: the limits only are shorter, and the ceilings less sharp.
"""

from __future__ import annotations

from functools import partial

from perfsuite.device.target import ssh
from perfsuite.measure import ceiling_store
from perfsuite.measure.board import connecting
from perfsuite.measure.board import opening as boards
from perfsuite.measure.board.hello import Hello

#: How long each end hears nothing of the other until it gives it up, s.
SILENCE_S = 3.0

#: How long the desk tries to reach a board again, s.
RECONNECT_S = 6.0

_LIMITS = connecting.LinkLimits(
    ping_s=0.3, silence_s=SILENCE_S, answer_s=20.0, reconnect_s=RECONNECT_S, retry_s=0.3, end_s=20.0
)

connecting.LinkLimits = lambda: _LIMITS  # type: ignore[misc, assignment]
ssh.SshLink.__init__.__kwdefaults__["alive_interval_s"] = 1
ssh._SETTINGS["ConnectTimeout"] = "2"
boards.Hello = partial(Hello, silence_limit_s=SILENCE_S)  # type: ignore[misc, assignment, attr-defined]
ceiling_store._BUDGET_MS = 60

"""What a subscriber makes of records."""

from __future__ import annotations

from perfsuite.records.live import LiveLoss, LivePhase, LiveToken
from perfsuite.trace.live_watch import LiveWatch


def token(step: int, repetition: int = 0) -> LiveToken:
    """Return a token of a series that grows by 1 µs a step."""
    return LiveToken(
        repetition=repetition, step=step, token=64 + step, latency_ns=10**6 + 1000 * step, end_ns=step, tokens_per_s=9.0
    )


def test_tokens_are_forecast() -> None:
    """After eight tokens each brings forecasts of the repetition's later steps."""
    watch = LiveWatch((1, 8))
    told = [watch.follow(token(step), None) for step in range(9)]
    assert told[:7] == [()] * 7
    assert [(each.repetition, each.step, each.horizon, each.forecast_ns) for each in told[8]] == [
        (0, 9, 1, 1009000),
        (0, 16, 8, 1016000),
    ]
    assert [each.n_outcomes for each in watch.forecast_errors()] == [1, 0]


def test_a_repetition_has_a_history_of_its_own() -> None:
    """The first tokens of the next repetition bring none."""
    watch = LiveWatch((1,))
    for step in range(9):
        watch.follow(token(step), None)
    assert watch.follow(token(0, repetition=1), None) == ()
    assert watch.n_tokens == 10


def test_delays_are_told_by_name() -> None:
    """Median and 95th percentile of what is known, phases by their names; a record without a delay is no delay."""
    watch = LiveWatch()
    phase = LivePhase(phase="copy", repetition=0, token=0, n_tokens=1, start_ns=0, end_ns=1)
    for delay_ns in range(100, 0, -1):
        watch.follow(phase, delay_ns)
    watch.follow(token(0), 7)
    watch.follow(token(1), None)
    copy, tokens = watch.delays()
    assert (copy.name, copy.n_records, copy.median_ns, copy.p95_ns) == ("copy", 100, 50, 96)
    assert (tokens.name, tokens.n_records, tokens.median_ns, tokens.p95_ns) == ("token", 1, 7, 7)


def test_losses_are_summed() -> None:
    """Known losses add up; an unknown number adds nothing."""
    watch = LiveWatch()
    for n_records in (3, None, 4):
        watch.follow(LiveLoss(where="subscriber", n_records=n_records), None)
    assert watch.n_lost == 7

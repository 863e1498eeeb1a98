"""``perfsuite live``."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path

from perfsuite.cli.answer import Answer, Sheet, fields_of, figure, give, percent, show
from perfsuite.cli.command_help import Commands, add_command, add_options
from perfsuite.cli.opencl_run import engine_run, opencl_backend_of
from perfsuite.cli.progress import progress, remarks
from perfsuite.cli.run_options import add_answer, add_subject, check_least, effort_group
from perfsuite.cli.taken_device import taken_device
from perfsuite.device.profile import find_profile
from perfsuite.errors import PerfsuiteError
from perfsuite.experiments.overhead.measurement import LEAST_PAIRS, LiveCostRun, measure_live_cost
from perfsuite.measure.board.protocol import Board
from perfsuite.measure.board.run_folder import RUN_FOLDER
from perfsuite.measure.live import Delivery, deliveries, run_live
from perfsuite.measure.plan import WORKER_LIMIT_S
from perfsuite.records.live import LiveEnd, LiveForecast, LiveLoss, LiveToken, to_line
from perfsuite.trace.forecast_errors import LiveWatch
from perfsuite.units import format_count, format_ns

_DEFAULT_PAIRS = 20

#: A day: whoever waits longer for a record has forgotten that he waits.
_LONGEST_LIMIT_S = 86_400.0


def add_parser(commands: Commands) -> None:
    """Add the subcommand."""
    parser = add_command(
        commands,
        "live",
        about="Starts a run, or attaches to one. Nothing is judged or kept.",
        examples={
            "perfsuite live --scenario=p64-g128 --json": "every record, for a program",
            "perfsuite live --socket=run.sock --limit=60": "attach to a run",
        },
        see=("docs/live.md",),
    )
    subject = add_subject(parser, "device", "model", "scenario=silo", "threads", "backend", "opencl-platform")
    add_options(subject, ("--socket PATH", "attach to the run that serves this socket", Path))
    limit = f"longest wait for a record, s (default {WORKER_LIMIT_S:g}, at most {_LONGEST_LIMIT_S:.0f})"
    add_options(
        effort_group(parser),
        ("--repetitions N", "repetitions of the scenario (default 1)", int, 1),
        ("--limit S", limit, float, WORKER_LIMIT_S),
        ("--cost", "measure what a subscriber costs a run, in pairs"),
        ("--pairs N", f"pairs of --cost (default {_DEFAULT_PAIRS}, at least {LEAST_PAIRS})", int),
    )
    add_answer(parser, json_help="print every record as a line of JSON")
    parser.set_defaults(run=_live)


def _live(options: argparse.Namespace) -> int:
    _check(options)
    if options.cost:
        with taken_device(find_profile(options.device), "live", options) as taken:
            cost = _cost(options, taken.board)
        return give(_cost_answer(cost), options)
    watch = LiveWatch()
    take = _taker(watch, as_json=options.json)
    if options.socket is not None:
        _attach(options, take)
    else:
        with taken_device(find_profile(options.device), "live", options) as taken:
            _run(options, taken.board, take)
    if not options.json:
        show(*_summary_sheets(watch))
        return 0
    summary = {
        "kind": "summary",
        "delays": list(map(asdict, watch.delays())),
        "forecast_errors": list(map(asdict, watch.forecast_errors())),
        **fields_of(watch, "n_tokens", "n_lost"),
    }
    print(json.dumps(summary))
    return 0


def _check(options: argparse.Namespace) -> None:
    check_least(options, "threads", "repetitions")
    check_least(options, "pairs", least=LEAST_PAIRS)
    if not 0 < options.limit <= _LONGEST_LIMIT_S:
        text = f"--limit={options.limit:g}"
        raise PerfsuiteError(f"{text}: expected seconds above 0, up to {_LONGEST_LIMIT_S:.0f} (a day)")
    if options.socket is not None and options.cost:
        raise PerfsuiteError(f"--socket={options.socket}: --cost starts runs of its own; leave one of them out")
    if options.socket is not None and (reach := find_profile(options.device).reach).way != "local":
        text = f"a socket of this machine, and {options.device} is reached by {reach.way}; leave --socket out"
        raise PerfsuiteError(f"--socket={options.socket}: {text}")
    if options.backend != "cpu" and options.socket is not None:
        raise PerfsuiteError(f"--socket={options.socket}: the run is there already; leave out --backend")
    if options.backend != "cpu" and options.cost:
        raise PerfsuiteError("--cost: on OpenCL, 'perfsuite overhead --backend opencl --recorder opencl+live' tells it")
    if options.pairs is not None and not options.cost:
        raise PerfsuiteError(f"--pairs={options.pairs}: says nothing without --cost")


def _attach(options: argparse.Namespace, take: Callable[[Delivery], None]) -> None:
    """Follow a run that is there already, or that begins within the limit."""

    waits = f"{options.socket}: nobody offers records there yet; waiting, {options.limit:g} s at most"
    told = remarks("live", options)
    for delivery in deliveries(options.socket, limit_s=options.limit, announce_wait=lambda: told.remark(waits)):
        take(delivery)


def _run(options: argparse.Namespace, board: Board, take: Callable[[Delivery], None]) -> None:
    """Start a run; on an OpenCL device under the tracing layer, whose kernels are delivered too."""
    opencl = opencl_backend_of(options, board)
    environment = opencl.environment(RUN_FOLDER) if opencl else None
    plan = engine_run(options, board, opencl, n_repetitions=options.repetitions).plan
    run_live(plan, take, board, extra_environment=environment, limit_s=options.limit)


def _taker(watch: LiveWatch, *, as_json: bool) -> Callable[[Delivery], None]:

    def take_json(delivery: Delivery) -> None:
        forecasts = watch.follow(delivery.record, delivery.delay_ns)
        print("\n".join(to_line(record) for record in (delivery.record, *forecasts)), flush=True)

    def take(delivery: Delivery) -> None:
        record = delivery.record
        forecasts = watch.follow(record, delivery.delay_ns)
        if isinstance(record, LiveToken):
            print(_token_line(record, forecasts), flush=True)
        elif isinstance(record, LiveLoss):
            print(_loss_line(record), flush=True)
        elif isinstance(record, LiveEnd) and not record.is_complete:
            print("the run broke off", flush=True)

    return take_json if as_json else take


def _cost(options: argparse.Namespace, board: Board) -> LiveCostRun:
    """Measure the cost; the subscriber does what that of a shown run does, except the printing."""
    watch = LiveWatch()

    def consume(delivery: Delivery) -> None:
        watch.follow(delivery.record, delivery.delay_ns)

    with progress("live", options) as told:
        return measure_live_cost(
            engine_run(options, board, n_repetitions=options.repetitions).plan,
            profile=find_profile(options.device),
            board=board,
            n_pairs=options.pairs or _DEFAULT_PAIRS,
            consume=consume,
            announce=lambda n_pairs: told.step(format_count(n_pairs, "pair")),
        )


def _token_line(token: LiveToken, forecasts: tuple[LiveForecast, ...]) -> str:
    text = "".join(
        f"  +{each.horizon} {format_ns(each.forecast_ns)} ({format_ns(each.lower_ns)} to {format_ns(each.upper_ns)})"
        for each in forecasts
    )
    return f"step {token.step:4d}  {format_ns(token.latency_ns):>8}  {token.tokens_per_s:7.1f} tokens/s{text}"


def _loss_line(loss: LiveLoss) -> str:
    n_records = loss.n_records
    count = "an unknown number of records" if n_records is None else format_count(n_records, "record")
    return f"lost: {count} ({loss.where})"


def _summary_sheets(watch: LiveWatch) -> Iterator[Sheet]:
    """Yield how late the records were, and how far off the forecasts."""
    delays = [(each.name, each.n_records, format_ns(each.median_ns), format_ns(each.p95_ns)) for each in watch.delays()]
    yield Sheet(("record", "n", "delay", "95 % within"), delays)
    yield Sheet(
        ("steps ahead", "n", "median error", "95 % within", "in interval", "last step", "mean"),
        [
            (
                *(each.horizon, each.n_outcomes),
                *(figure("{:.1f} %", each.median_percent), figure("{:.1f} %", each.p95_percent)),
                *(percent(each.within_ratio), figure("{:.1f} %", each.last_median_percent)),
                figure("{:.1f} %", each.mean_median_percent),
            )
            for each in watch.forecast_errors()
        ],
    )


def _cost_answer(run: LiveCostRun) -> Answer:
    """Return what a subscriber costs each phase."""
    ratios, n_discarded = run.overhead.ratios, run.overhead.n_discarded
    rows = [
        (
            *(phase.value, _change(ratio.median_ratio)),
            *(f"{_change(ratio.lower_ratio)} to {_change(ratio.upper_ratio)}", ratio.n_pairs),
        )
        for phase, ratio in ratios.items()
    ]
    line = f"{format_count(run.n_tokens, 'token')} delivered, {format_count(n_discarded, 'pair')} left out"
    costs = [{"phase": phase.value, **asdict(ratio)} for phase, ratio in ratios.items()]
    plain = {"costs": costs, "n_tokens": run.n_tokens, "n_discarded": n_discarded}
    return Answer(parts=[Sheet(("phase", "median", "95 % bounds", "pairs"), rows), line], plain=plain)


def _change(ratio: float) -> str:
    return f"{(ratio - 1.0) * 100.0:+.2f} %"

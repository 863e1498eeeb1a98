"""``perfsuite live``: what a run does, while it does it."""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import platformdirs

from perfsuite.cli.live_tables import loss_line, show_cost, show_summary, token_line
from perfsuite.cli.opencl_options import opencl_backend_of
from perfsuite.device.profile import find_profile
from perfsuite.device.threads import default_threads
from perfsuite.errors import PerfsuiteError
from perfsuite.expectation.cases import llama_workload
from perfsuite.measure.launch import WORKER_LIMIT_S, environment_engine
from perfsuite.measure.live import Delivery, deliveries, run_live
from perfsuite.measure.llama_plan import llama_plan
from perfsuite.measure.plan import LlamaPlan
from perfsuite.records.live import LiveEnd, LiveLoss, LiveToken, to_line
from perfsuite.trace.live_watch import LiveWatch
from perfsuite.units import format_count
from perfsuite.verdict.live_cost import LiveCostRun, measure_live_cost
from perfsuite.verdict.overhead import LEAST_PAIRS
from perfsuite.workload.scenario import find_scenario
from perfsuite.workload.weights import materialize, resolve

if TYPE_CHECKING:
    from perfsuite.cli.commands import Commands
    from perfsuite.measure.opencl_backend import OpenClBackend

_DEFAULT_PAIRS = 20

#: A day: whoever waits longer for a record has forgotten that he waits.
_LONGEST_LIMIT_S = 86_400.0


def add_parser(commands: Commands) -> None:
    """Add the subcommand."""
    parser = commands.add_parser("live", help="show each token of a run as it comes, with a forecast of the next ones")
    parser.add_argument("--device", default="host", help="device profile (default host)")
    parser.add_argument("--model", default="smollm2-135m-q8_0", metavar="PATH|NAME")
    parser.add_argument("--scenario", default="silo", help="default silo")
    parser.add_argument("--threads", type=int, help="threads of the engine (default: physical cores)")
    parser.add_argument("--backend", choices=("cpu", "opencl"), default="cpu", help="llama.cpp backend (default cpu)")
    parser.add_argument("--opencl-platform", metavar="NAME", help="OpenCL platform, by a part of its name")
    parser.add_argument("--repetitions", type=int, default=1, metavar="N", help="of the scenario (default 1)")
    parser.add_argument("--socket", type=Path, metavar="PATH", help="attach to a run that offers its records there")
    parser.add_argument("--limit", type=float, default=WORKER_LIMIT_S, metavar="S", help="longest wait for a record, s")
    parser.add_argument("--json", action="store_true", help="print every record as a line of JSON")
    parser.add_argument("--cost", action="store_true", help="measure what a subscriber costs a run, in pairs")
    parser.add_argument("--pairs", type=int, metavar="N", help=f"pairs of --cost (default {_DEFAULT_PAIRS})")
    parser.set_defaults(run=_live)


def _live(options: argparse.Namespace) -> int:
    _check(options)
    if options.cost:
        show_cost(_cost(options), as_json=options.json)
        return 0
    watch = LiveWatch()
    take = _taker(watch, as_json=options.json)
    if options.socket is not None:
        _attach(options, take)
    else:
        _run(options, take)
    show_summary(watch, as_json=options.json)
    return 0


def _check(options: argparse.Namespace) -> None:
    for name, least in (("threads", 1), ("repetitions", 1), ("pairs", LEAST_PAIRS)):
        value = getattr(options, name)
        if value is not None and value < least:
            raise PerfsuiteError(f"--{name}={value}: expected {least} or more")
    if not 0 < options.limit <= _LONGEST_LIMIT_S:
        raise PerfsuiteError(
            f"--limit={options.limit:g}: expected seconds above 0, up to {_LONGEST_LIMIT_S:.0f} (a day)"
        )
    if options.socket is not None and options.cost:
        raise PerfsuiteError(f"--socket={options.socket}: --cost starts runs of its own; leave one of them out")
    if options.backend != "cpu" and options.socket is not None:
        raise PerfsuiteError(f"--socket={options.socket}: the run is there already; leave out --backend")
    if options.backend != "cpu" and options.cost:
        raise PerfsuiteError("--cost: on OpenCL, 'perfsuite overhead --backend opencl --recorder opencl+live' tells it")
    if options.pairs is not None and not options.cost:
        raise PerfsuiteError(f"--pairs={options.pairs}: says nothing without --cost")


def _attach(options: argparse.Namespace, take: Callable[[Delivery], None]) -> None:
    """Follow a run that is there already, or that begins within the limit."""

    def announce() -> None:
        waits = f"nobody offers records there yet; waiting, {options.limit:g} s at most"
        print(f"live: {options.socket}: {waits}", file=sys.stderr, flush=True)

    for delivery in deliveries(options.socket, limit_s=options.limit, announce_wait=announce):
        take(delivery)


def _run(options: argparse.Namespace, take: Callable[[Delivery], None]) -> None:
    """Start a run; on an OpenCL device under the tracing layer, whose kernels are delivered too."""
    opencl = opencl_backend_of(options)
    with tempfile.TemporaryDirectory(prefix="perfsuite-opencl-") as logs:
        environment = opencl.environment(Path(logs)) if opencl else None
        run_live(_plan(options, opencl), take, extra_environment=environment, limit_s=options.limit)


def _plan(options: argparse.Namespace, opencl: OpenClBackend | None = None) -> LlamaPlan:
    cache_dir = Path(platformdirs.user_cache_dir("perfsuite"))
    find_profile(options.device)
    flash_attn = opencl is None or not opencl.device.is_cpu
    weights = resolve(options.model, cache_dir=cache_dir / "models")
    return llama_plan(
        llama_workload(weights, find_scenario(options.scenario), flash_attn=flash_attn),
        environment_engine(),
        gguf_path=materialize(weights, cache_dir=cache_dir / "models"),
        cache_dir=cache_dir,
        n_threads=options.threads or default_threads(),
        opencl=opencl,
        n_repetitions=options.repetitions,
    )


def _taker(watch: LiveWatch, *, as_json: bool) -> Callable[[Delivery], None]:
    """Return what to do with each record."""

    def take_json(delivery: Delivery) -> None:
        forecasts = watch.follow(delivery.record, delivery.delay_ns)
        print("\n".join(to_line(record) for record in (delivery.record, *forecasts)), flush=True)

    def take(delivery: Delivery) -> None:
        record = delivery.record
        forecasts = watch.follow(record, delivery.delay_ns)
        if isinstance(record, LiveToken):
            print(token_line(record, forecasts), flush=True)
        elif isinstance(record, LiveLoss):
            print(loss_line(record), flush=True)
        elif isinstance(record, LiveEnd) and not record.is_complete:
            print("the run broke off", flush=True)

    return take_json if as_json else take


def _cost(options: argparse.Namespace) -> LiveCostRun:
    """Measure the cost; the subscriber does what that of a shown run does, but for the printing."""
    watch = LiveWatch()

    def consume(delivery: Delivery) -> None:
        watch.follow(delivery.record, delivery.delay_ns)

    def announce(n_pairs: int) -> None:
        print(f"live: {format_count(n_pairs, 'pair')}", file=sys.stderr, flush=True)

    return measure_live_cost(
        _plan(options),
        profile=find_profile(options.device),
        n_pairs=options.pairs or _DEFAULT_PAIRS,
        consume=consume,
        announce=announce,
    )

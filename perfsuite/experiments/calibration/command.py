"""``perfsuite calibrate``."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, replace

from perfsuite.cli.answer import Answer, Part, Sheet, give
from perfsuite.cli.command_help import Commands, add_command
from perfsuite.cli.kept_folders import user_cache
from perfsuite.cli.progress import progress
from perfsuite.cli.run_options import add_answer, add_shared, add_subject, check_least, effort_group
from perfsuite.cli.taken_device import taken_device
from perfsuite.device.address import ACCEPTED, asked_reach
from perfsuite.device.profile import find_profile
from perfsuite.errors import ArchitectureError, MeasurementError, PerfsuiteError, meant
from perfsuite.expectation.timing.calibration_plan import N_ROUNDS, CalibrationPlan, standard_plan
from perfsuite.expectation.timing.engine_times import EngineTimes
from perfsuite.expectation.timing.grid import STANDARD_TYPES, typical_shapes
from perfsuite.expectation.timing.operator_times import Efficiency, efficiency
from perfsuite.experiments.said_graphs import engine_graphs
from perfsuite.measure.board.protocol import Board, board_name
from perfsuite.measure.calibrate import CalibrationRun, calibrate
from perfsuite.measure.ceiling_store import best_of_board, measured_ceilings, store_calibration
from perfsuite.units import format_change, format_ns
from perfsuite.workload.ggml_types import GGML_TYPES


def add_parser(commands: Commands) -> None:
    """Add the subcommand."""
    parser = add_command(
        commands,
        "calibrate",
        about="""
        Takes ten minutes on two cores; let nothing else run. Forecasts use the result until device, build or number of
        threads change.
        """,
        examples={
            "perfsuite calibrate --device=rubikpi": "a board",
            "perfsuite calibrate --threads=1 --type=q8_0": "one thread, one type",
        },
        writes="the calibration, into the cache",
        see=("docs/forecasting.md", "perfsuite held-out"),
    )
    subject = add_subject(parser, "device")
    text = f"how to reach the device: {ACCEPTED.removeprefix('accepted are ')} (default: the profile's)"
    subject.add_argument("--address", metavar="local|ssh:HOST|adb|serial:PORT", help=text)
    add_shared(subject, "threads")
    text = f"type of weights; repeatable (default {', '.join(STANDARD_TYPES)})"
    subject.add_argument("--type", action="append", metavar="TYPE", help=text)
    text = f"rounds over all operators (default {N_ROUNDS})"
    effort_group(parser).add_argument("--rounds", type=int, default=N_ROUNDS, metavar="N", help=text)
    add_answer(parser)
    parser.set_defaults(run=_calibrate)


def _calibrate(options: argparse.Namespace) -> int:
    profile = find_profile(options.device)
    types = tuple(_weight_type(name) for name in options.type or STANDARD_TYPES)
    check_least(options, "rounds", "threads")
    reach = asked_reach("--address", options.address, profile.reach)
    plan = standard_plan(types, user_cache() / "models", n_rounds=options.rounds)
    taking = taken_device(profile, "calibrate", options, reach=reach)
    with taking as taken, progress("calibrate", options) as told:
        board, facts = taken.board, taken.board.facts()
        n_threads = options.threads or facts.default_threads
        plan = _with_graphs(plan, board, told.remark)
        run = CalibrationRun(board=board, engine=facts.engine, profile=profile, n_threads=n_threads, plan=plan)
        told.step("ceilings")
        measured = measured_ceilings(board, n_threads)
        calibration = calibrate(run, told.step)
        taken.refuse_untrusted()
        ceilings = best_of_board(board, measured, user_cache())
        kept_by = board_name(board).kept_by
        path = store_calibration(calibration, facts.engine.build_id, user_cache(), board=kept_by)
        told.remark(f"stored in {path}")
    times = EngineTimes(calibration)
    shapes = typical_shapes(point.shape for point in calibration.points)
    found = [efficiency(shape, times.operators, ceilings) for shape in shapes]
    factors = {
        phase: {
            **asdict(replace(factor, kinds=dict(factor.kinds), groups=dict(factor.groups))),
            "families": ["/".join(each) for each in sorted(factor.families)],
        }
        for phase, factor in times.factors.items()
    }
    plain = {"operators": [asdict(each) for each in found], "phases": factors}
    give(Answer(parts=lambda: _parts(found, times), plain=lambda: plain), options)
    return 0


def _with_graphs(plan: CalibrationPlan, board: Board, remark: Callable[[str], None]) -> CalibrationPlan:
    """Ask the engine for the graphs that the suite does not write; what it says none of is left out."""
    known = []
    for each in plan.compositions:
        try:
            if not each.is_analytical:
                graphs = engine_graphs(each, board.facts().engine, board, models_dir=user_cache() / "models")
                each = replace(each, engine_graphs=graphs)
            known.append(each)
        except (ArchitectureError, MeasurementError) as error:
            remark(f"{each.weights.name} is left out: {error}")
    return replace(plan, compositions=tuple(known))


def _weight_type(name: str) -> str:
    kind = GGML_TYPES.get(name.upper())
    if kind is None or not kind.is_weight:
        accepted = [each.name.lower() for each in GGML_TYPES.values() if each.is_weight]
        told = f"accepted are {', '.join(accepted)}{meant(name, accepted)}"
        raise PerfsuiteError(f"--type={name}: no type of weights; {told}")
    return kind.name.lower()


def _parts(found: Sequence[Efficiency], times: EngineTimes) -> Iterator[Part]:
    rows = [
        (
            *((shape := each.shape).op, shape.type),
            " x ".join(str(n) for n in (shape.n_inner, shape.n_outer, shape.n_heads, shape.n_experts) if n),
            *(shape.n_tokens, format_ns(each.time_ns), f"{each.flops_per_s / 1e9:.0f}", f"{each.compute_ratio:.0%}"),
            *(f"{each.bytes_per_s / 1e9:.1f}", f"{each.memory_ratio:.0%}", f"{each.spread_ratio:.0%}"),
        )
        for each in found
    ]
    yield Sheet(("operator", "type", "shape", "rows", "time", "GFLOP/s", "of peak", "GB/s", "of memory", "±"), rows)
    for phase, factor in times.factors.items():
        kept = f"; a cache keeps {factor.cache.kept_bytes / 1e6:.0f} MB of a model" if factor.cache.kept_bytes else ""
        yield (
            f"{phase}: operators within the engine take {format_change(factor.overall.ratio)} against alone; with a "
            f"factor for each kind ± {factor.spread_ratio * 100:.1f} % from one architecture to the next, "
            f"± {factor.process_spread_ratio * 100:.1f} % from one process to the next{kept}"
        )

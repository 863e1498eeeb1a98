"""A study for programs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from perfsuite.cli.answer import fields_of
from perfsuite.experiments.study.joined import QuantizationRow, Study, StudyPoint
from perfsuite.experiments.study.token_latency import TokenLatency

#: Raised whenever a field changes its meaning.
SCHEMA = 1


def study_plain(study: Study, latencies: Mapping[str, TokenLatency], engine: str) -> dict[str, Any]:
    """Return the study as JSON-able values; its latencies are what ``--from`` reads."""
    plan = study.plan
    return {
        "schema": SCHEMA,
        "title": plan.title,
        "reference": plan.reference,
        "engine": engine or None,
        "n_prompts": len(plan.prompt_lengths),
        "n_prompt_tokens": sum(plan.prompt_lengths),
        "n_gen": plan.n_gen,
        "latencies": {name: _latency_plain(each) for name, each in latencies.items()},
        "points": [_point_plain(each) for each in study.points],
        "frontiers": [
            {
                **fields_of(each, "task", "suite"),
                "tokens": each.kind.value,
                "members": [member.name for member in each.frontier.members],
                "knee": each.frontier.knee.name if each.frontier.knee else None,
            }
            for each in study.frontiers
        ],
        "quantizations": [_quantization_plain(each) for each in study.quantizations],
        "mean_h_q": dict(study.mean_scores()),
    }


def _latency_plain(latency: TokenLatency) -> dict[str, Any]:
    return {
        **fields_of(latency, "source", "prefill_s_per_token", "decode_s_per_token"),
        "prefill_samples_s": list(latency.prefill_samples_s),
        "decode_samples_s": list(latency.decode_samples_s),
    }


def _point_plain(point: StudyPoint) -> dict[str, Any]:
    return {
        "task": point.task,
        "run": point.run.name,
        **fields_of(point.run, "model", "suite", "quantization"),
        **fields_of(point.score, "metric", "accuracy"),
        "accuracy_stderr": point.score.stderr,
        "normalised_accuracy": point.normalised_accuracy,
        **fields_of(point.latency, "prefill_s_per_token", "decode_s_per_token"),
    }


def _quantization_plain(row: QuantizationRow) -> dict[str, Any]:
    ratios = row.ratios
    return {
        "task": row.task,
        "model": row.run.model,
        "original": row.original.quantization,
        "quantization": row.run.quantization,
        "m_accuracy": ratios and ratios.accuracy_ratio,
        "m_prefill": ratios and ratios.prefill_ratio,
        "m_decode": ratios and ratios.decode_ratio,
        "h_q": row.score,
    }

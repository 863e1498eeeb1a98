"""What each field of ``observation.json`` may hold, as far as it is there."""

from __future__ import annotations

from perfsuite.records.field_checks import amount, count, flag, list_of, number, object_of, or_none, text

_TOKEN = object_of({"n_context": count, "samples_ns": list_of(count)})

_TIMELINE = object_of(
    {
        "phase": text,
        "n_tokens": count,
        "duration_ns": count,
        "names": list_of(object_of({"role": text, "op": text})),
        "operator_fields": list_of(text),
        "operators": list_of(list_of(or_none(count))),
    }
)

_NODE = object_of({"role": text, "op": text, "n_operators": count, "time_ns": count})

_GRAPH = object_of(
    {"phase": text, "nodes": list_of(_NODE), "edges": list_of(object_of({"source": text, "target": text}))},
)

_STATE = object_of(
    {
        "group": text,
        "at_s": amount,
        "is_valid": flag,
        "load_average": or_none(amount),
        "cpu_mhz": or_none(amount),
        "temperature_celsius": or_none(number),
        "waiting_ratio": or_none(amount),
        "steal_ratio": or_none(amount),
        "throttled": or_none(flag),
        "battery_ratio": or_none(amount),
        "power_watts": or_none(amount),
        "least_cpu_mhz": or_none(amount),
        "most_cpu_mhz": or_none(amount),
        "most_celsius": or_none(number),
    }
)

#: A row of a timeline under the names of its columns.
SPAN_FIELDS = object_of({"name": count, "layer": or_none(count), "start_ns": count, "duration_ns": count})

#: The whole file.
OBSERVATION_FIELDS = object_of(
    {
        "tokens": list_of(_TOKEN),
        "timelines": list_of(_TIMELINE),
        "graphs": list_of(_GRAPH),
        "works": list_of(object_of({"case_id": text, "flops": count, "moved_bytes": count}), key="case_id"),
        "states": list_of(_STATE),
    }
)

"""What must be equal for two measurements to be comparable, in buckets that do not change by themselves."""

from __future__ import annotations

from collections.abc import Mapping

#: Fields in the order in which differences are told.
Fingerprint = Mapping[str, str]

#: The field of the engine's released version, which a baseline is there to judge.
ENGINE = "engine"

_PLATFORM = "opencl_platform"

#: What runs beside a model alone: only fields of runs that were asked for it.
BESIDE = ("lora_rank", "n_sequences", "draft", "mmproj")

#: What was asked for; the other fields say what the machine is.
_ASKED = (
    *("model", "backend", "threads", "flash_attn", "kv_types", "n_ubatch", *BESIDE),
    *(_PLATFORM, "opencl_device"),
)

#: Where the version of an OpenCL platform begins behind its name; the version is the machine's.
#: *Source*: OpenCL 3.0, table 'List of supported param_names by clGetPlatformInfo', CL_PLATFORM_VERSION.
_PLATFORM_VERSION = ", OpenCL "


def without_engine(fingerprint: Fingerprint) -> dict[str, str]:
    """Return the fields by which times are comparable: what was asked for and what the machine is."""
    return {field: value for field, value in fingerprint.items() if field != ENGINE}


def asked_fields(fingerprint: Fingerprint) -> dict[str, str]:
    """Return what was asked for; of an OpenCL platform its name."""
    asked = {field: fingerprint[field] for field in _ASKED if field in fingerprint}
    return {
        field: value.partition(_PLATFORM_VERSION)[0] if field == _PLATFORM else value for field, value in asked.items()
    }


def machine_fields(fingerprint: Fingerprint) -> dict[str, str]:
    """Return what the machine is; an OpenCL platform counts with its version."""
    asked = {*_ASKED, ENGINE} - {_PLATFORM}
    return {field: value for field, value in fingerprint.items() if field not in asked}


def differences(old: Fingerprint, new: Fingerprint) -> tuple[str, ...]:
    """Name every field that differs, with both values."""
    fields = dict.fromkeys((*old, *new))
    return tuple(
        f"{field} '{old.get(field, '-')}', now '{new.get(field, '-')}'"
        for field in fields
        if old.get(field) != new.get(field)
    )

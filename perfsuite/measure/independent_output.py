"""Reading what other people's benchmarks print."""

from __future__ import annotations

import re
from xml.etree import ElementTree

from perfsuite.errors import MeasurementError
from perfsuite.expectation.roofline.ceiling import CPU, Resource
from perfsuite.expectation.roofline.independent_rate import IndependentRate

#: Benchmarks of likwid-bench, with and without AVX, by what they do to memory.
LIKWID_KINDS = {
    "load_avx": "read",
    "copy_avx": "copy",
    "stream_avx": "triad",
    "load": "read",
    "copy": "copy",
    "stream": "triad",
}
_MEGA, _GIGA = 1e6, 1e9
#: What clpeak measures: element of its XML, unit, and what that is with us.
_CLPEAK_PARTS = (
    ("global_memory_bandwidth", "gbps", Resource.BANDWIDTH, "read"),
    ("single_precision_compute", "gflops", Resource.COMPUTE, "fp32"),
)


def likwid_rate(text: str) -> IndependentRate:
    """Read one benchmark of likwid-bench: MByte/s are 10⁶ bytes of all arrays, loads and stores, in the mean.

    *Source*: likwid 5.2.2, bench/likwid-bench.c (``Data volume`` over ``Time``).
    """
    test = _found(text, "likwid-bench", r"^Test: (\w+)")
    if test not in LIKWID_KINDS:
        raise MeasurementError(f"likwid-bench ran {test}, expected one of {', '.join(LIKWID_KINDS)}")
    return IndependentRate(
        program="likwid-bench",
        resource=Resource.BANDWIDTH,
        kind=LIKWID_KINDS[test],
        processor=CPU,
        n_threads=int(_found(text, "likwid-bench", r"^Using (\d+) threads?$")),
        best_per_s=float(_found(text, "likwid-bench", r"^MByte/s:\s+([\d.]+)$")) * _MEGA,
    )


def stream_rates(text: str) -> tuple[IndependentRate, ...]:
    """Read STREAM's best rates of copy and triad, in 10⁶ bytes of all arrays; one thread where it does not say.

    *Source*: STREAM 5.10, stream.c (``bytes[]`` over ``mintime``).
    """
    threads = re.search(r"^Number of Threads counted = (\d+)", text, re.MULTILINE)
    return tuple(
        IndependentRate(
            program="stream",
            resource=Resource.BANDWIDTH,
            kind=name.lower(),
            processor=CPU,
            n_threads=int(threads[1]) if threads else 1,
            best_per_s=float(_found(text, "stream", rf"^{name}:\s+([\d.]+)\s")) * _MEGA,
        )
        for name in ("Copy", "Triad")
    )


def clpeak_rates(xml: str, *, platform_name: str, device_name: str) -> tuple[IndependentRate, ...]:
    """Read what clpeak reached on one device with the best of its vectors, in 10⁹ bytes or FLOPs.

    *Source*: clpeak 1.1.2, src/global_bandwidth.cpp (bytes that are read) and src/compute_sp.cpp (2 FLOPs a ``mad``).
    """
    device = _clpeak_device(xml, platform_name, device_name)
    return tuple(
        IndependentRate(
            program="clpeak",
            resource=resource,
            kind=kind,
            processor=device_name,
            n_threads=None,
            best_per_s=_clpeak_best(device, element, unit) * _GIGA,
        )
        for element, unit, resource, kind in _CLPEAK_PARTS
    )


def _clpeak_device(xml: str, platform_name: str, device_name: str) -> ElementTree.Element:
    try:
        root = ElementTree.fromstring(xml)
    except ElementTree.ParseError as error:
        raise MeasurementError(f"clpeak: its XML cannot be read ({error})") from None
    for platform in root.iter("platform"):
        for device in platform.iter("device"):
            names = (platform.get("name", "").strip(), device.get("name", "").strip())
            if names == (platform_name, device_name):
                return device
    raise MeasurementError(f"clpeak: knows no {device_name} of {platform_name}")


def _clpeak_best(device: ElementTree.Element, element: str, unit: str) -> float:
    part = device.find(element)
    if part is None or part.get("unit") != unit or not len(part):
        raise MeasurementError(f"clpeak: no {element} in {unit} in its XML")
    try:
        return max(float(width.text or "") for width in part)
    except ValueError as error:
        raise MeasurementError(f"clpeak: {element}: {error}") from None


def _found(text: str, program: str, pattern: str) -> str:
    match = re.search(pattern, text, re.MULTILINE)
    if match is None:
        raise MeasurementError(f"{program}: its output has no line like {pattern!r}")
    return match[1]

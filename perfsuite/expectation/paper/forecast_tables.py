"""Tables 6 and 10: the paper's forecasts of time to first token and of throughput."""

from __future__ import annotations

from collections.abc import Iterator

from perfsuite.expectation.paper.decode_tables import decode_gib
from perfsuite.expectation.paper.hardware import PAPER_DEVICES
from perfsuite.expectation.paper.passes import prefill_pass
from perfsuite.expectation.paper.table_row import GIGA, TERA, TableRow, llama2_7b, prompts_with_odd, table_rows
from perfsuite.workload.variant import find_variant

#: Prompts from which on Table 6 computes with operations that it has rounded to two decimals.
_ROUNDED_FROM = 128
#: Operations of every device, the quantised ones too, are those of this variant.
_COUNTED = "bf16-bf16"


def table_6() -> Iterator[TableRow]:
    """Operations in 1e12, seconds to first token at 50 and 100 % of a device, and percent of it that was reached.

    TTFT at 50 % is TOPs / (0.5 TOPS) and that at 100 % is half of it; the efficiency is the latter over the measured
    time, where that is held.
    """
    for prompt in prompts_with_odd():
        tops = prefill_pass(llama2_7b(), find_variant(_COUNTED), prompt).total.flops / TERA
        used = round(tops, 2) if prompt >= _ROUNDED_FROM else tops
        for device in PAPER_DEVICES:
            if device.flops_per_s is None:
                continue
            full_s = used * TERA / device.flops_per_s
            values = {"tops": tops, "ttft_100": full_s, "ttft_50": 2.0 * full_s}
            if prompt in device.measured_ttft_s:
                values["efficiency_pct"] = 100.0 * full_s / device.measured_ttft_s[prompt]
            yield from table_rows(6, values, hw=device.name, prompt=prompt)


def table_10() -> Iterator[TableRow]:
    """Tokens/s: efficiency x bandwidth in GB/s (1e9) over Table 7's memory in GiB, as the paper divides them.

    Its measured efficiencies need throughputs that are not held.
    """
    for prompt in prompts_with_odd():
        for device in PAPER_DEVICES:
            if device.bytes_per_s is None or device.memory_efficiency_ratio is None or device.decode_variant is None:
                continue
            gigabytes_per_s = device.memory_efficiency_ratio * device.bytes_per_s / GIGA
            tokens_per_s = gigabytes_per_s / decode_gib(device.decode_variant, prompt)
            yield from table_rows(10, {"forecast_tps": tokens_per_s}, hw=device.name, prompt=prompt)

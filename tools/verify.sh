#!/usr/bin/env bash
# Measures again what docs/results.md states. Asks for a machine on which nothing else runs; takes about an hour, and
# then some three hours for the certificate, which can be interrupted: it goes on where it stopped.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1
root=$PWD
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

run() { .venv/bin/python -m pytest --device=host -q --baseline-dir="$work/baselines" --perf-dir="$work/$1" "${@:2}"; }
closing() { sed -n '/^perfsuite: /,$p' | grep -v '^FAILED'; }
title() { printf '\n== %s\n' "$*"; }

title 'A standard run: cases, parts, memory, share of the operators'
run standard --baseline=record | closing
.venv/bin/python - "$work/standard/run.json" <<'PY'
import collections, json, sys
run = json.load(open(sys.argv[1]))
print("cases", dict(collections.Counter(case["kind"] for case in run["cases"])))
print("duration_s", run["duration_s"], "peak_rss_bytes", run["peak_rss_bytes"])
print("operator_share_ratio", run["operator_share_ratio"])
PY

title 'Two sessions without any change'
for _ in 1 2 3; do run same | closing; done

title 'An operator that takes longer: SWIGLU, 20 times its own time more'
run injected -k 'phase or operator' --perf-inject=SWIGLU=20 >"$work/injected.log"; echo "exit code $?"
closing <"$work/injected.log"

title 'One thread against a baseline of two'
run threads -k 'phase or operator' --threads 1 | closing

title 'A competing process on the same cores'
for _ in $(seq "$(nproc)"); do timeout 900 sh -c 'while :; do :; done' & done
run contended -k 'phase or operator' | closing
kill $(jobs -p) 2>/dev/null
wait 2>/dev/null

title 'Another model: llama-3.2-1b-q4_0'
run larger --model llama-3.2-1b-q4_0 -k 'phase or operator' | closing

title 'Overhead of the recorders'
.venv/bin/perfsuite overhead --device host --model smollm2-135m-q8_0

title 'In pairs: flash attention on against off'
run flash -k 'not kernel' --against-args=flash_attn=0 | closing

title 'In pairs: decode 3 % slower on purpose'
run slower -k 'not kernel' --against-args="threads=$(.venv/bin/python -c 'import psutil; print(psutil.cpu_count(logical=False))')" \
  --perf-inject=decode=0.03 | closing

title 'LIFE: every table, beside the printed values'
.venv/bin/perfsuite reproduce life | tail -n 4

title 'Rooflines: four sweeps, and the same again'
for name in first again; do
  .venv/bin/perfsuite roofline --sweep scenario --sweep depth --sweep precision --sweep attention --bounds \
    --output "$work/$name.json" >"$work/$name.txt"
done
cat "$work/first.txt"
.venv/bin/perfsuite roofline --from "$work/again.json" --again "$work/first.json" | sed -n '/^against/,$p'
.venv/bin/perfsuite roofline --model llama-3.2-1b-q4_0 --scenario p128-g24
.venv/bin/perfsuite roofline --published

title 'llama-bench beside ours, in pairs'
.venv/bin/python tools/compare_llama_bench.py --pairs 12

title 'Calibration, and forecasts of workloads that it never ran'
.venv/bin/perfsuite calibrate | tail -n 2
.venv/bin/perfsuite held-out
.venv/bin/perfsuite variants --markdown

title 'The engine on OpenCL: cases, counts against its own profile, idle time and growth'
tools/opencl_backend.sh >/dev/null
run opencl --backend=opencl --baseline=off | closing
mkdir "$work/profiled"
(cd "$work/profiled" &&
  "$root/.venv/bin/python" "$root/docs/examples/profiled_run.py" "$("$root/tools/opencl_backend.sh" --profiling)" >/dev/null &&
  "$root/.venv/bin/python" "$root/tools/compare_cl_profiling.py" cl_profiling.csv opencl-*.log \
    --untimed kernel_convert_block_q8_0)
.venv/bin/perfsuite kernels --scenario p64-g300

title 'Programs do not notice the OpenCL layer'
tools/layer_transparency.sh

title 'Fidelity'
.venv/bin/perfsuite fidelity --phases-only
.venv/bin/perfsuite fidelity --operators-only
.venv/bin/perfsuite fidelity --backend opencl --scenario p32-g24 --kernels-only
.venv/bin/perfsuite fidelity --published

title 'What following costs, and live delivery'
.venv/bin/perfsuite overhead --backend opencl --recorder profiling --recorder layer --pairs 8
.venv/bin/perfsuite live --scenario silo --repetitions 4 | tail -n 16
.venv/bin/perfsuite live --cost --scenario silo --pairs 20

title 'Tracing: agreement of recorders, what they cost, a million events, experts under memory pressure'
.venv/bin/perfsuite trace check && {
  .venv/bin/perfsuite trace agree
  .venv/bin/perfsuite overhead --recorder ebpf-token --recorder ebpf-graph --pairs 200
  .venv/bin/perfsuite overhead --recorder=ebpf-{operator,structure,counters,ends,threads,all} \
    --recorder ebpf-operator+perf --recorder ebpf-counters+perf
  .venv/bin/perfsuite overhead --model llama-3.2-1b-q4_0 --recorder=ebpf-{token,operator,counters}
  .venv/bin/perfsuite overhead --model llama-3.2-1b-f16 --recorder=ebpf-{operator,counters} --pairs 20
  .venv/bin/perfsuite trace --model qwen1.5-moe-a2.7b-l2-q8_0 --scenario p4-g100 --trace experts,counters \
    --memory-limit 1200M --output "$work/experts"
  .venv/bin/perfsuite experts "$work/experts"
}
.venv/bin/perfsuite overhead --recorder callback --recorder preload --recorder cb_eval
.venv/bin/python tools/time_traces.py
run traced --baseline=off --perf-trace -k test_trace | closing

title 'Shapes: the steps of a tile, hunts with a planted fault and without, and a policy'
.venv/bin/perfsuite sweep bmm --device host --n 1:512 --m 1 --k 128 --tile 64 --output "$work/bmm.json" --plot "$work/bmm.svg"
.venv/bin/perfsuite sweep bmm --n 1:4096 --m 1 --k 128 --tile 64 --expected-only
.venv/bin/python tools/shape_hunts.py
.venv/bin/perfsuite policy gemv --type f16 --k 512 -o "$work/policy.json" && .venv/bin/perfsuite policy check "$work/policy.json"

title 'Reports and history: 500 cases, 1,000 runs, 60 nights'
.venv/bin/python tools/time_report.py
.venv/bin/python tools/time_history.py
.venv/bin/python tools/simulate_history.py --histories 2000

title 'Prompt subsets'
for pair in arc-easy=238 arc-challenge=112 gsm8k=131 hellaswag=100; do
  .venv/bin/python docs/examples/made_up_lengths.py "${pair%=*}" >"$work/${pair%=*}.txt"
  .venv/bin/perfsuite prompts "$work/${pair%=*}.txt" --keep "${pair#*=}" --random 1000
done

title 'False alarms and power of verdicts in pairs'
.venv/bin/perfsuite certify --device host --runs 60 >/dev/null
.venv/bin/perfsuite certify --device host --runs 20 --inject 0.03 --inject 0.05 --inject 0.1 \
  --inject-operator ffn_up=0.2 --load

title 'Install size'
tools/install_size.sh '' opencl history shapes benchmark s3

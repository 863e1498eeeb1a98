# Every target works in a fresh clone: 'env' installs what is missing, and does nothing when nothing has changed.
# The logic of it stands in tools/bootstrap.sh.

BIN := .venv/bin
ARGS ?=

.DEFAULT_GOAL := help
.PHONY: help env perf perf-opencl opencl ebpf browser boards farm docs test lint verify wheel clean distclean

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## /  make \1:/p' Makefile | awk -F: '{ printf "%-20s%s\n", $$1, $$2 }'
	@echo "ARGS='...' is handed to pytest by perf and test; PYTHON=python3.12 chooses the interpreter of .venv/"

env: ## make .venv/ with the suite installed in it (llama.cpp is compiled once, and kept)
	@tools/bootstrap.sh

perf: env ## measure llama.cpp and the OpenCL kernels on this machine
	$(BIN)/python -m pytest --device=host $(ARGS)

opencl: env
	@tools/opencl_backend.sh >/dev/null

perf-opencl: opencl ## measure llama.cpp on its OpenCL backend, kernel by kernel
	$(BIN)/python -m pytest --device=host --backend=opencl $(ARGS)

ebpf: env ## install what the eBPF recorder is compiled with (Debian: clang, bpftool, libbpf-dev, ...)
	@tools/ebpf.sh

browser: env ## install what the report is tested in (Debian's chromium, fonts, playwright)
	@tools/browser.sh

boards: env ## install what test boards are made of (Debian: openssh-server, iproute2, libfaketime, ...)
	@tools/boards.sh

farm: env ## install the farm's daemons into .venv/ (labgrid)
	@tools/farm.sh

docs: env ## build the documentation into build/docs/, every link checked
	@tools/docs.sh

test: opencl ## the suite's own tests, with coverage
	$(BIN)/coverage erase
	@tools/tests.sh $(ARGS)
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage report --fail-under=90

lint: env ## ruff and mypy
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

verify: env ## measure again what docs/results.md states (minutes; asks for a quiet machine)
	@tools/verify.sh

wheel: env ## build the wheel into dist/
	$(BIN)/python -m build --wheel

clean: ## remove what was built; .venv/ and the records of runs stay
	rm -rf build dist *.egg-info .coverage .coverage.* .mypy_cache .ruff_cache .pytest_cache .hypothesis .benchmarks .tox
	find perfsuite tests -name __pycache__ -type d -prune -exec rm -rf {} +

distclean: clean ## clean, and remove .venv/ (the compiled llama.cpp stays in the cache)
	rm -rf .venv

# Every target works in a fresh clone: 'env' installs what is missing, and does nothing when nothing has changed.
# The logic of it stands in tools/bootstrap.sh.

BIN := .venv/bin
ARGS ?=

.DEFAULT_GOAL := help
.PHONY: help env perf perf-opencl opencl counted ebpf docs test-needs long-needs test test-long coverage mutants fuzz lint audit verify wheel clean distclean

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## /  make \1:/p' Makefile | awk -F: '{ printf "%-20s%s\n", $$1, $$2 }'
	@echo "ARGS='...' is handed to pytest by perf, counted, test and test-long, and to fuzz; PYTHON=python3.12 chooses the interpreter of .venv/"

env: ## make .venv/ with the suite installed in it (llama.cpp is compiled once, and kept)
	@tools/bootstrap.sh

perf: env ## measure llama.cpp and the OpenCL kernels on this machine
	$(BIN)/python -m pytest --device=host $(ARGS)

opencl: env
	@tools/opencl_backend.sh >/dev/null

perf-opencl: opencl ## measure llama.cpp on its OpenCL backend, kernel by kernel
	$(BIN)/python -m pytest --device=host --backend=opencl $(ARGS)

counted: env ## count the work of llama.cpp, and judge it by baselines/counted/
	@tools/needs.sh counting
	$(BIN)/python -m pytest --device=counted $(ARGS)

ebpf: env ## install what the eBPF recorder is compiled with (Debian: clang, bpftool, libbpf-dev, ...)
	@tools/needs.sh ebpf

# The compiler comes first; the other packages are installed while it compiles llama.cpp.
test-needs: ## install what 'make test' needs, as far as that needs no password (clang, sshd, OpenCL's backend, ...)
	@tools/needs.sh --system ebpf opencl boards audit & tools/bootstrap.sh; status=$$?; wait; exit $$status
	@tools/opencl_backend.sh >/dev/null || true

# What is counted, and llama.cpp for arm64, are compiled before the tests: beside them that takes longer than one may.
long-needs: test-needs ## install what the longest tests need besides (emulators, a Debian for arm64, Chromium, labgrid)
	@tools/needs.sh --system arm browser counting & tools/arm_root.sh >/dev/null || true; wait
	@tools/needs.sh --python browser farm
	@tools/needs.sh counting
	@for target in aarch64-linux-gnu "$$(uname -m)-linux-musl"; do \
	  nice $(BIN)/perfsuite bundle --target $$target --quiet >/dev/null || true; done

docs: env ## build the documentation into build/docs/, every link checked
	@tools/docs.sh

test: test-needs ## the suite's own tests, but for the longest and those that measure
	@tools/tests.sh $(ARGS)

test-long: long-needs ## the longest of them, and those that measure (ARGS=tests/measure: of one folder)
	@tools/tests.sh --long $(ARGS)

coverage: long-needs ## all of them, with the lines that each has run
	@tools/tests.sh --coverage $(ARGS)

mutants: coverage ## change the suite's code in 500 places and count what the tests notice
	$(BIN)/python -m pip install -q --group mutants
	$(BIN)/python tools/mutants.py $(ARGS)

fuzz: env ## read two minutes of changed files with every reader (ARGS="--reader gguf --executions 1000000")
	nice $(BIN)/python -m tests.fuzz $(or $(ARGS),--seconds 120)

lint: env ## ruff, mypy, plain English (docs/style.md), bandit and cppcheck (docs/security.md)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python tools/style.py
	$(BIN)/python tools/house.py
	@tools/audit.sh

audit: env ## look the installed packages up among known vulnerabilities (network)
	@$(BIN)/python -c 'import pip_audit' 2>/dev/null || $(BIN)/python -m pip install -q --group audit
	@$(BIN)/python tools/audit_packages.py

verify: env ## measure again what docs/results.md states (minutes; asks for a quiet machine)
	@tools/verify.sh

wheel: env ## build the wheel into dist/
	$(BIN)/python -m build --wheel

clean: ## remove what was built; .venv/ and the records of runs stay
	rm -rf build dist *.egg-info .coverage .coverage.* .mypy_cache .ruff_cache .pytest_cache .hypothesis .benchmarks .tox
	find perfsuite tests -name __pycache__ -type d -prune -exec rm -rf {} +

distclean: clean ## clean, and remove .venv/ (the compiled llama.cpp stays in the cache)
	rm -rf .venv

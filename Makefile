# Everything a person or CI does with the project. Needs Python 3.11+ and pip, nothing else.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# One worker for each core, up to four; a file's tests stay together. `make test ARGS='-n0 tests/unit/core'` does without.
SPREAD := -n auto --maxprocesses 4 --dist loadfile --no-loadscope-reorder
STAMP := $(VENV)/.installed
VLLM := .venv-vllm
RAY := .venv-ray

.DEFAULT_GOAL := help
.PHONY: help setup up check test test-system test-k8s e2e-vllm test-ray bench calibration clean

help: ## this list
	@grep -E '^[a-z0-9-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "lorapick needs Python 3.11 or newer; $(PYTHON) is $$($(PYTHON) --version 2>&1). Try: make PYTHON=python3.11 $(MAKECMDGOALS)" >&2; exit 2; }
	@echo "setting up $(VENV) (first time: about a minute)"
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install -q --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $(STAMP)

setup: $(STAMP) ## make the virtual environment

up: setup ## the main job: Envoy, the picker, eight emulated pods, a sample of traffic
	@$(BIN)/lorapick up $(ARGS)

check: setup ## format, lint, import layers, types
	@echo "ruff";         $(BIN)/ruff format --check . && $(BIN)/ruff check .
	@echo "import-linter"; $(BIN)/lint-imports
	@echo "mypy";         $(BIN)/mypy

# Tests start hundreds of Python processes. Whoever told Python to keep no bytecode would have each compile all anew.
test test-system: export PYTHONDONTWRITEBYTECODE :=

test: setup ## all tests that need only pip packages
	@$(BIN)/python -m pytest $(SPREAD) $(ARGS)

test-system: setup ## tests with Debian packages (root), and those that take minutes of real time
	@.ci/system-packages
	@$(BIN)/python -m pytest -m 'system or twin' $(ARGS)

test-k8s: setup ## lorapick and its chart against a real Kubernetes API server (Go 1.26; first time: 18 minutes of CPU)
	@$(PYTHON) e2e/k8s/k8s_build.py
	@$(BIN)/python -m pytest -n0 -m k8s e2e/k8s $(ARGS)

e2e-vllm: setup ## lorapick before two real vLLM servers on this CPU (6 GB once; then 8 to 15 minutes)
	@$(PYTHON) e2e/vllm/install.py $(VLLM)
	@$(BIN)/python -m pytest -m vllm e2e/vllm $(ARGS)

test-ray: ## the router class on a local Ray cluster, beside Ray's own (500 MB once; then 5 minutes)
	@test -x $(RAY)/bin/python || $(PYTHON) -m venv $(RAY)
	@$(RAY)/bin/python -m pip install -q --disable-pip-version-check -e '.[ray]' pytest pytest-timeout
	@cd e2e/ray && ../../$(RAY)/bin/python -m pytest $(ARGS)

bench: setup ## benchmarks, one after the other; results go to docs/benchmarks.md
	@$(BIN)/python -m bench.run $(ARGS)

calibration: setup ## fit the pod model to measured runs, play those not seen (9 CPU minutes); writes docs/calibration.md
	@$(BIN)/lorapick calibrate data/calibration/vllm085_h100_multi_lora_runs_half.csv --report docs/calibration.md $(ARGS)

clean: ## remove the environment and run files
	@rm -rf $(VENV) $(VLLM) $(RAY) .k8s run .pytest_cache .mypy_cache .ruff_cache .hypothesis

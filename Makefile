# Everything a fresh machine needs: `make run` sets up and runs the main job, `make test` sets up and runs the checks and the tests.
PYTHON ?= python3
VENV   ?= .venv
PEERS  ?= .venv-bench
BIN    := $(VENV)/bin
ARGS   ?=
LEVELS ?=

.DEFAULT_GOAL := help
.PHONY: help run test quick lint check nightly reports bench figures clean

help:  ## what can be made
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

$(VENV)/.run: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --editable '.[toolchain,openmp]'
	@touch $@

$(VENV)/.test: $(VENV)/.run
	$(BIN)/python -m pip install --quiet --editable '.[toolchain,openmp,opencl,cuda,wasm,models,test,check]'
	@touch $@

run: $(VENV)/.run  ## set up, compile samples/gemm.toml, check and time it
	$(BIN)/caten -i samples/gemm.toml --runtime clang --test "M=512,N=512,K=512" --config OMP=1,MARCH=native --debug 1 $(ARGS)

test: lint  ## set up, check the code, run every test (types among them, and a fixed slice of the random nets)
	$(BIN)/python -m pytest -n 2 --dist worksteal $(ARGS)

quick: $(VENV)/.test  ## quick tests of the front end and the scheduler (under a minute, no host compiler)
	$(BIN)/python -m pytest -n 2 --dist worksteal -m 'not slow' --no-compilers tests/core tests/frontend tests/loop tests/tensor tests/schedule $(ARGS)

lint: $(VENV)/.test  ## ruff
	$(BIN)/ruff check src tests runtimes docs benchmarks

check: lint  ## lint, types, import rule
	$(BIN)/mypy
	$(BIN)/python -m pytest tests/test_architecture.py

nightly: $(VENV)/.test  ## every random net at its full count
	$(BIN)/python -m pytest -n 2 --dist worksteal --nightly $(ARGS)

reports: $(VENV)/.test  ## the conformance reports under docs/reports, made anew (some minutes)
	for runtime in clang gcc numpy opencl riscv wasm; do \
		mkdir -p docs/reports/$$runtime && $(BIN)/caten test-runtime --runtime $$runtime -o docs/reports/$$runtime && rm docs/reports/$$runtime/junit.xml || exit 1; \
	done
	$(BIN)/caten report merge docs/reports/*/reports.json -o docs/reports/README.md

$(PEERS)/.bench: pyproject.toml
	$(PYTHON) -m venv $(PEERS)
	$(PEERS)/bin/python -m pip install --quiet --editable '.[toolchain,openmp]'
	$(PEERS)/bin/python benchmarks/install.py
	@touch $@

bench: $(PEERS)/.bench  ## how long building takes, caten beside its peers on one thread and on two, the levels -O0 to -O3, other forms of the same (an hour)
	$(PEERS)/bin/python -m benchmarks.build_times --json build/bench-build.json
	$(PEERS)/bin/python -m benchmarks --runs 3 --threads 1 --json build/bench-1.json $(ARGS)
	$(PEERS)/bin/python -m benchmarks --runs 3 --threads 2 --json build/bench-2.json $(ARGS)
	$(PEERS)/bin/python -m benchmarks.levels --json build/bench-levels.json $(LEVELS)
	$(PEERS)/bin/python -m benchmarks.forms --json build/bench-forms.json
	$(PEERS)/bin/python -m benchmarks.training --threads 1 --json build/training-1.json
	$(PEERS)/bin/python -m benchmarks.training --threads 2 --json build/training-2.json
	$(PEERS)/bin/python -m benchmarks.training_memory

figures: $(PEERS)/.bench  ## put what `make bench` measured into docs/performance.md
	$(PEERS)/bin/python -m benchmarks.table build/bench-*.json --write docs/performance.md

clean:  ## remove what make made
	rm -rf $(VENV) $(PEERS) build dist .pytest_cache .mypy_cache .ruff_cache

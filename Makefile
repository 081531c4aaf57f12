# Everything runs from `.venv`, which is made on the first call. `make help` lists the targets.
PYTHON ?= python3
BIN := .venv/bin
JOBS ?= auto

# What Python has compiled is kept, whatever the caller of make says: the tests start some thousand processes.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help demo test check format lint types tests sums mutants fuzz bench clean

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | sort

.venv/ready: pyproject.toml hatch_build.py
	@echo 'making .venv and installing what evidence needs into it: once, a minute or two'
	@$(PYTHON) -m venv .venv
	@$(BIN)/python -m pip install --quiet --quiet --disable-pip-version-check -e '.[dev]'
	@touch $@

# A real engine for the tests marked `engine`. Where it cannot be had they are skipped, unless EVIDENCE_REQUIRE_ENGINE is set.
.engines/ready: .venv/ready engines/prepare-llama.sh
	@PYTHON=$(BIN)/python engines/prepare-llama.sh .engines/llama >/dev/null && touch $@ || { \
	  echo 'no llama.cpp could be prepared: the tests on a real engine will be skipped' >&2; test -z "$$EVIDENCE_REQUIRE_ENGINE"; }

demo: .venv/ready ## the main job: capture, build, validate with mutation controls, show; leaves dist/
	rm -rf runs/demo dist/demo dist/demo-evaluation.* dist/report.html
	$(BIN)/evidence capture campaigns/demo/campaign.toml --all --runs runs/demo || test $$? -eq 4  # one aborts on purpose
	$(BIN)/evidence build campaigns/demo --runs runs/demo --output dist
	$(BIN)/evidence validate dist/demo-evaluation.tgz --source-root dist/demo --verify-results
	$(BIN)/evidence show dist/demo-evaluation.tgz
	$(BIN)/evidence report dist/demo-evaluation.tgz --output dist/report.html

test: check ## lint, types, checksums and all tests

check: .venv/ready lint types sums-check tests

format: .venv/ready ## write the formatting
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix --quiet .
	$(BIN)/python -m evidence.sums

lint: .venv/ready
	$(BIN)/ruff format --check --quiet .
	$(BIN)/ruff check --quiet .

types: .venv/ready
	$(BIN)/mypy

tests: .venv/ready .engines/ready
	$(BIN)/python -m pytest -q -n $(JOBS) --dist worksteal

sums: .venv/ready ## pin archive/, schemas/ and verifiers/ in SHA256SUMS
	$(BIN)/python -m evidence.sums

.PHONY: sums-check
sums-check: .venv/ready
	$(BIN)/python -m evidence.sums --check

mutants: .venv/ready ## alter the judging code and ask whether a test sees it (SAMPLE=240)
	$(BIN)/python -m mutants $(if $(SAMPLE),--sample $(SAMPLE))

SECONDS ?= 10
fuzz: .venv/ready ## try every reader with mutated input, SECONDS=10 for each
	$(BIN)/python -m fuzz --seconds $(SECONDS)

bench: ## list the benchmarks
	@for file in $$(grep -l '"--json"' benchmarks/*.py); do printf 'python -m benchmarks.%s\n' $$(basename $$file .py); done

clean: ## remove what was made here
	rm -rf .venv .engines dist runs

SHELL := /bin/bash
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.DEFAULT_GOAL := help
.PHONY: help setup jars archive demo test lint soak bench conformance docs clean

help:  ## what can be made
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

$(VENV)/.installed: pyproject.toml constraints.txt
	@command -v $(PYTHON) >/dev/null || { echo "holdfast needs Python 3.11 or newer; set PYTHON=/path/to/python3"; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "holdfast needs Python 3.11 or newer, $(PYTHON) is older; set PYTHON=/path/to/python3"; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "installing Python packages into $(VENV) ..."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $@

setup: $(VENV)/.installed jars  ## install everything into .venv and the jar cache

jars: $(VENV)/.installed
	@$(BIN)/holdfast jars

archive: setup  ## archive the classes of Spark and Kafka: a server then starts in two thirds of the time
	@$(BIN)/python -m compileall -q holdfast
	@$(BIN)/holdfast jars --archive

demo: setup  ## start everything, run the main job, stop
	@$(BIN)/holdfast demo

test: archive  ## run the tests, in two lanes side by side
	$(BIN)/python -m pytest -q -n 2 -m "not slow" --durations=25 --durations-min=5

lint: $(VENV)/.installed  ## ruff, mypy, import-linter
	$(BIN)/ruff check holdfast tests bench
	$(BIN)/ruff format --check holdfast tests bench
	$(BIN)/mypy
	$(BIN)/lint-imports

SEED := $(or $(SEED),$(shell echo $$RANDOM))
soak: archive  ## the long proofs: hundreds of kills and of random examples (SEED=n repeats a run)
	@echo "random examples with --hypothesis-seed=$(SEED)"
	SOAK=1 $(BIN)/python -m pytest -q -m "slow or law" --timeout 7200 --hypothesis-seed=$(SEED)

bench: setup  ## measure, as ratios within one run
	$(BIN)/python -m bench

docs: $(VENV)/.installed  ## build the documentation into site/
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[docs]'
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict
	@echo "open site/index.html"

conformance: setup  ## run ksqlDB's tests (KIND=qtt or plans for one kind), write docs/conformance.md; UPDATE=1 adds what passes to the list
	PYTHONPATH=tests $(BIN)/python -m conformance $(if $(UPDATE),--update) $(if $(KIND),--kind $(KIND))

clean:  ## remove what was built (not the jar cache)
	rm -rf $(VENV) build dist site *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis

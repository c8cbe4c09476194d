# What a newcomer and a developer run. `make run` and `make test` need Python 3.11, make and the package registries;
# the real Solr also Java 17 and Maven, the clients Node 20.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
RUN_STAMP := $(VENV)/.run
DEV_STAMP := $(VENV)/.dev
PORT ?= 8080

.PHONY: run test check fix clean lock bench bench-quick eval rights

run: $(RUN_STAMP)
	@DATAFARI_RAG_HOME=$(CURDIR)/var exec $(BIN)/datafari-rag demo --port $(PORT)

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(RUN_STAMP): setup.cfg pyproject.toml requirements-dev.lock | $(VENV)/bin/python
	@echo "Installing datafari_rag (once)…"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c requirements-dev.lock -e ".[ingest,jwt,cloud]"
	@touch $@

$(DEV_STAMP): setup.cfg pyproject.toml requirements-dev.lock | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements-dev.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps -e .
	@touch $@ $(RUN_STAMP)

test: $(DEV_STAMP)
	$(BIN)/python -m pytest

check: $(DEV_STAMP)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/python -m pytest -q tests/test_architecture.py
	$(BIN)/python -m pytest -q --cov --cov-report=term:skip-covered tests/core tests/protocols tests/llm_templates tests/test_pipeline.py

fix: $(DEV_STAMP)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

lock: $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet -r requirements-dev.in -e ".[ingest,jwt,cloud,stub,eval,tokens]"
	$(BIN)/python -m pip freeze --exclude-editable > requirements-dev.lock

clean:
	rm -rf $(VENV) .venvs build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache

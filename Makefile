# Needs Python 3.11 or newer with pip and venv, and nothing else; everything goes into .venv.

PYTHON ?= python3
# What pip is to install for torch, before the package itself. Without a GPU this is smaller:
#   make demo TORCH="torch==2.13.0 --index-url https://download.pytorch.org/whl/cpu"
TORCH ?= torch==2.13.0

VENV := .venv
PIP := $(VENV)/bin/python -m pip install --quiet --disable-pip-version-check

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo lint test clean

help:  ## show this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "make %-6s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: $(VENV)/demo-ready  ## rerank a small made-up corpus, start to end
	rm -rf build/demo
	$(VENV)/bin/rerank demo --out build/demo

lint: $(VENV)/lint-ready  ## check style and types
	$(VENV)/bin/ruff check
	$(VENV)/bin/ruff format --check
	$(VENV)/bin/mypy

test: $(VENV)/test-ready  ## run the tests
	$(VENV)/bin/python -m pytest -n auto --dist worksteal

clean:  ## remove the environment and the caches
	rm -rf $(VENV) build .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -prune -exec rm -rf {} +

# Stamps: a step is done again only when what it depends on is newer.

$(VENV)/torch-ready:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo 'rerank needs Python 3.11 or newer; name one with: make PYTHON=python3.12 ...' >&2; \
	  exit 1; }
	@echo 'Setting up $(VENV); the first time this downloads torch and takes some minutes.'
	$(PYTHON) -m venv $(VENV)
	$(PIP) $(TORCH)
	@touch $@

$(VENV)/demo-ready: $(VENV)/torch-ready pyproject.toml
	$(PIP) -e .
	@touch $@

$(VENV)/lint-ready: $(VENV)/test-ready
	$(PIP) -e '.[lint]'
	@touch $@

$(VENV)/test-ready: $(VENV)/torch-ready pyproject.toml
	$(PIP) -e '.[test]'
	@touch $@ $(VENV)/demo-ready

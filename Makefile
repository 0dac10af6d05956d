# Needs Python 3.11 or newer with pip and venv, and nothing else; everything goes into .venv.

PYTHON ?= python3
# What pip is to install for torch, before the package itself. Without a GPU this is smaller:
#   make demo TORCH="torch==2.13.0 --index-url https://download.pytorch.org/whl/cpu"
TORCH ?= torch==2.13.0

VENV := .venv
PIP := $(VENV)/bin/python -m pip install --quiet --disable-pip-version-check

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo lint test tables docs dist clean

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

# DATA: as in recipes/studies/systems and recipes/studies/source; MODELS: as recipes/studies/tables.py says; QUICK=1 makes what is small and there.
DATA ?= ../shared/data
MODELS ?= models
tables: $(VENV)/demo-ready  ## make the tables of README: hours; QUICK=1: minutes
	$(VENV)/bin/python recipes/studies/tables.py --data $(DATA) --models $(MODELS) $(if $(QUICK),--quick)

docs: $(VENV)/docs-ready  ## build the documentation, build/site/index.html
	$(VENV)/bin/python -m sphinx -W --keep-going -q -j auto -c recipes/docs -d build/doctrees . build/site

dist: $(VENV)/dist-ready  ## build and check the source distribution and the wheel
	rm -rf dist
	$(VENV)/bin/python -m build
	$(VENV)/bin/python -m twine check --strict dist/*

clean:  ## remove the environment and the caches
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
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

$(VENV)/docs-ready: $(VENV)/demo-ready
	$(PIP) -e '.[docs]'
	@touch $@

$(VENV)/dist-ready: $(VENV)/torch-ready
	$(PIP) build twine
	@touch $@

$(VENV)/test-ready: $(VENV)/torch-ready pyproject.toml
	$(PIP) -e '.[test]'
	@touch $@ $(VENV)/demo-ready

# The targets that README.md and .ci/run name. Everything is installed into .venv; nothing outside the checkout is touched
# but caches (pip's, and ~/.cache/headroom for the programs of the test control plane).

PYTHON ?= python3
BIN := .venv/bin
DEMO := .headroom/demo

# Empty counts as unset: compiled modules are kept, since each of the many processes that tests start reads them.
export PYTHONDONTWRITEBYTECODE :=

.DEFAULT_GOAL := help
.PHONY: help setup demo demo-once quick test types quick-tests check test-e2e bench cluster lock clean

help: ## This list
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## /{printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# Says every ten seconds that what follows goes on; it ends with the line's shell.
STILL_THERE := ( while sleep 10 >/dev/null 2>&1; do echo "  … $$(du -sm .venv | cut -f 1) MB are there" >&2; done ) & trap "kill $$!" EXIT;

setup: .venv/.installed ## Install headroom and its development tools into .venv

.venv/.installed: requirements-dev.lock pyproject.toml
	@echo "Setting up .venv: some 70 packages, 600 MB, a minute or two …" >&2
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "headroom needs Python 3.11 or newer: set PYTHON=python3.12, say")'
	@$(PYTHON) -m venv .venv
	@$(STILL_THERE) $(BIN)/pip install --quiet --disable-pip-version-check --require-hashes -r requirements-dev.lock
	@$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@echo "Compiling the loops of placement, once: about 40 s …" >&2
	@$(BIN)/python -m reconciler.placement.precompile
	@touch $@

demo: setup ## The daemon on a Git repository made from examples-repo/ and the embedded cluster, until Ctrl-C
	@$(BIN)/python -m tests.demo $(DEMO)

demo-once: setup ## The same, but it ends by itself when the cluster is as declared
	@$(BIN)/python -m tests.demo $(DEMO) --until-settled

quick: setup ## Lint, types and unit tests of what changed since main (under a minute; BRANCH=name for another)
	@$(BIN)/python -m tests.quick $(BRANCH)

test: setup ## Lint, types, contracts and every quick test (a few minutes)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check --quiet .
	@$(MAKE) --jobs=2 --no-print-directory types quick-tests

# Side by side, since contracts and mypy use one core alone.
types:
	$(BIN)/lint-imports
	$(BIN)/mypy

# Three on two cores: many tests wait, for a daemon's clock or a process. In a fresh clone each of them would compile the loops.
quick-tests:
	$(BIN)/python -m reconciler.placement.precompile
	$(BIN)/pytest -m "not e2e and not soak and not perf" -n 3 --dist loadgroup

test-e2e: setup ## Tests on the real control plane (needs Go 1.26 for the first build, about 10 minutes)
	$(BIN)/pytest -m "e2e" -n 2 --dist loadgroup tests/integration tests/e2e

check: test test-e2e ## All of it, as CI does

bench: setup ## Figures: start-up, validation, planning, placement; fails beyond the recorded limits
	$(BIN)/python -m tests.perf

cluster: setup ## A real control plane with Karpenter and KWOK on loopback, to play with, until Ctrl-C
	@$(BIN)/python -m tests.controlplane

LOCK := .venv/lock/bin/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
	--no-annotate --no-header

lock: ## Renew the lock files from pyproject.toml
	@$(PYTHON) -m venv .venv/lock && .venv/lock/bin/pip install --quiet uv
	$(LOCK) --output-file requirements.lock pyproject.toml build-requirements.txt
	$(LOCK) --extra dev --output-file requirements-dev.lock pyproject.toml build-requirements.txt
	$(LOCK) --output-file config/image/requirements.lock config/image/requirements.in

clean: ## Remove what the targets above made inside the checkout
	rm -rf .venv .headroom .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis dist

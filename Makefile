# What people and the checks run. Needs make and Python 3.11 or newer, nothing else; see
# .ci/setup_env.py for how the environment is made.
#
#   make PYTHON=/path/to/python3    another interpreter
#   make VENV=/path/to/folder       another place for the environment
#   make test ARGS="-k rules"       arguments for pytest
#   make test WORKERS=0             in one process, in order
#   make notebooks ACCEPT=1         take outputs that say something else than before
#   make bench ONLY=1,2,8           some goals of speed; QUICK=1 only sees that they run

SHELL := /bin/sh
.DEFAULT_GOAL := help

VENV ?= .venv
ifneq ($(words $(VENV)),1)
$(error VENV is "$(VENV)"; make needs a single path without spaces)
endif
BIN := $(VENV)/bin
ARGS ?=
# One per processor, up to four: each collects all tests anew, and tests start processes of their own.
WORKERS ?= logical
# A quick run keeps no figures: they would not be results.
MEASURE = $(if $(ONLY),--only $(ONLY)) $(if $(QUICK),--quick,--json $(RESULTS)) $(ARGS)
NOTEBOOKS := $(sort $(wildcard notebooks/*.ipynb))
# What measures has an environment of its own: nothing else is to need the others it compares with.
BENCH_VENV ?= .venv-bench
RESULTS ?= benchmarks/results.json

NEW_ENOUGH := import sys; sys.exit(sys.version_info < (3, 11))
PYTHON ?= $(shell for python in python3 python3.14 python3.13 python3.12 python3.11 python; do \
	"$$python" -c "$(NEW_ENOUGH)" >/dev/null 2>&1 && echo "$$python" && break; done)

# $(call setup,arguments of pip install,stamps): fills the environment, then marks it.
define setup
	@"$(PYTHON)" -c "$(NEW_ENOUGH)" 2>/dev/null || { echo >&2 \
		"Python 3.11 or newer is needed ($(if $(PYTHON),$(PYTHON) is not,none is on PATH))." \
		"Install one or name it: make PYTHON=/path/to/python3"; exit 1; }
	@"$(PYTHON)" .ci/setup_env.py "$(VENV)" $(1)
	@touch $(2)
endef

SETUP := pyproject.toml runbook_nb/_version.py .ci/setup_env.py .ci/bootstrap_pip.py
DEMO := $(VENV)/.ready-demo
TEST := $(VENV)/.ready-test
BENCH = $(BENCH_VENV)/.ready-bench
DOCS := $(VENV)/.ready-docs
DEV := $(VENV)/.ready-dev
BROWSER := $(VENV)/.ready-browser
# What mounts recordings and makes foreign ones, from the npm registry: for tests, never shipped.
VIEWER := tests/browser/viewer/node_modules/.package-lock.json

.PHONY: help demo test browser notebooks notebooks-check lint types layers bench bench-peers bench-docs \
	docs links format clean

help: ## list the targets
	@sed -n 's/^\([a-z-]*\): .*## \(.*\)/  make \1	\2/p' Makefile

demo: $(DEMO) ## run the demonstration
	@"$(BIN)/runbook-nb" demo

test: $(TEST) ## run the tests
	@"$(BIN)/python" -m pytest --ignore=tests/browser -n $(WORKERS) --maxprocesses 4 --dist worksteal $(ARGS)

browser: $(BROWSER) $(VIEWER) ## open notebooks and pages in a real browser; needs Chromium, node and npm
	@"$(BIN)/python" .ci/fetch_axe.py
	@"$(BIN)/python" -m pytest tests/browser $(ARGS)

notebooks: $(TEST) ## run the notebooks anew and write their outputs
	@"$(BIN)/runbook-nb" notebooks $(if $(ACCEPT),--accept) $(NOTEBOOKS)

notebooks-check: $(TEST) ## check that the notebooks show what they would show again
	@"$(BIN)/python" -m pytest --nbval --nbval-current-env -p no:cacheprovider $(NOTEBOOKS) $(ARGS)

lint: $(DEV) ## check style and formatting
	@"$(BIN)/ruff" check
	@"$(BIN)/ruff" format --check

types: $(DEV) ## check types
	@"$(BIN)/mypy"

layers: $(DEV) ## check which module imports which
	@"$(BIN)/lint-imports"

bench: $(BENCH) ## measure the goals of speed; a missed gate is an error
	@"$(BENCH_VENV)/bin/python" benchmarks/run.py $(MEASURE)

bench-peers: $(BENCH) $(VIEWER) ## measure against other libraries; needs node and npm
	@"$(BENCH_VENV)/bin/python" benchmarks/run.py --peers $(MEASURE)

bench-docs: $(BENCH) ## write the figures of the last measurements into the documentation
	@"$(BENCH_VENV)/bin/python" benchmarks/write_docs.py $(RESULTS)

docs: $(DOCS) ## build the documentation into docs/_build/html
	@"$(BIN)/python" -m sphinx -q -E -W -b html docs docs/_build/html $(ARGS)

links: $(DOCS) ## look whether the links that lead out of the documentation are alive; needs the network
	@"$(BIN)/python" -m sphinx -q -E -b linkcheck docs docs/_build/links $(ARGS)

format: $(DEV) ## rewrite the code in the house style
	@"$(BIN)/ruff" check --fix-only --quiet
	@"$(BIN)/ruff" format

clean: ## remove the environment, caches and built files
	@rm -rf .venv $(BENCH_VENV) build dist runbook-nb-demo .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	@rm -rf .cache .shots .ci-artifacts tests/browser/viewer/node_modules
	@rm -rf docs/_build docs/changelog.md docs/notebooks docs/notebooks.md
	@find runbook_nb tests .ci -name __pycache__ -type d -prune -exec rm -rf {} +

# The larger environments hold the smaller ones, so they mark those as ready too.
$(DEMO): $(SETUP)
	$(call setup,-e ".[examples]",$@)

$(BENCH): $(SETUP)
	@"$(PYTHON)" .ci/setup_env.py "$(BENCH_VENV)" -e ".[examples]" --group bench
	@touch $@

$(DOCS): $(SETUP)
	$(call setup,-e ".[examples]" --group docs,$@ $(DEMO))

$(TEST): $(SETUP)
	$(call setup,-e ".[examples]" --group test,$@ $(DEMO))

$(BROWSER): $(SETUP)
	$(call setup,-e ".[examples]" --group browser,$@ $(TEST) $(DEMO))

$(VIEWER): tests/browser/viewer/package-lock.json
	@cd tests/browser/viewer && npm ci --ignore-scripts --no-audit --no-fund --silent
	@touch $@

$(DEV): $(SETUP)
	$(call setup,-e ".[examples]" --group dev,$@ $(TEST) $(DEMO))

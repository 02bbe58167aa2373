# Every target sets up what it needs in .venv. Nothing outside this folder is touched, except that root on
# Debian gets a missing C++ compiler, and chromium for the tests of the page, from apt-get.

PYTHON ?= python3
CXX ?= g++
TORCH := torch==2.13.0  # the CPU build's version; an unpinned torch brings gigabytes of CUDA
DATA ?= data
PYTEST_ARGS ?=

VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip -qq --disable-pip-version-check
SAY := @printf '\n== %s\n'

TORCH_STAMP := $(VENV)/.torch-installed
PACKAGE_STAMP := $(VENV)/.package-installed
BENCH_STAMP := $(VENV)/.bench-installed
CHROMIUM := /usr/bin/chromium
KERNEL := src/psal/_C.abi3.so
SOURCES := $(wildcard csrc/*/*.cpp csrc/*/*.h)
SANITIZED := build/sanitize

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help install demo test test-all lint bench sanitize clean

help:  ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

install: $(KERNEL)  ## set up .venv and compile the kernel

demo: $(KERNEL)  ## fill, colour, rebuild and enlarge the sample pictures; they go to demo/
	$(SAY) "demo"
	@$(BIN)/python -m psal.cli.demo --out demo

test: lint $(CHROMIUM)  ## lint, and all tests but the slow ones
	$(SAY) "tests"
	$(BIN)/python -m pytest -q -m "not slow" $(PYTEST_ARGS)

test-all: lint sanitize $(CHROMIUM)  ## lint, all tests, and those of the kernel under the sanitizers
	$(SAY) "all tests"
	$(BIN)/python -m pytest -q $(PYTEST_ARGS)

lint: $(KERNEL)  ## ruff, mypy and clang-format
	$(SAY) "lint and types"
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/clang-format --dry-run -Werror $(SOURCES)

bench: $(KERNEL) $(BENCH_STAMP)  ## measure the layer and the editing on real pictures: make bench DATA=folder
	$(SAY) "benchmark of the layer"
	$(BIN)/python -m benchmarks.layer --data $(DATA)
	$(SAY) "benchmark of the editing"
	$(BIN)/python -m benchmarks.editing --data $(DATA)

# A second build beside the normal one. libasan must be in the process before Python is, and libstdc++ with it,
# or it does not see C++ exceptions; Python itself leaks by design. What torch.compile makes is not the kernel's.
sanitize: $(KERNEL)  ## the tests with a kernel under AddressSanitizer and UBSan
	$(SAY) "compiling with the sanitizers"
	PSAL_SANITIZE=1 $(BIN)/python setup.py --quiet build --build-lib $(SANITIZED)/lib --build-temp $(SANITIZED)/objects
	$(SAY) "tests under the sanitizers: a few minutes"
	PYTHONPATH=$(SANITIZED)/lib \
	LD_PRELOAD="$$($(CXX) -print-file-name=libasan.so) $$($(CXX) -print-file-name=libstdc++.so)" \
	ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 \
	$(BIN)/python -m pytest -q tests -m "not slow" -k "not compile and not export" \
		--ignore=tests/app --ignore=tests/experiments --ignore=tests/training --ignore=tests/cli

clean:  ## remove what was built; .venv stays
	rm -rf build dist demo src/*.egg-info $(KERNEL) .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find src tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +

$(TORCH_STAMP):
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "psal needs Python 3.11 or later: set PYTHON, as in make PYTHON=python3.12 demo" >&2; exit 1; }
	$(SAY) "creating $(VENV) and installing torch"
	@$(PYTHON) -m venv $(VENV) || \
		{ echo "Python cannot create a venv: on Debian or Ubuntu, apt-get install python3-venv" >&2; exit 1; }
	@$(PIP) install $(TORCH) 'setuptools>=77' ninja
	@touch $@

# Without build isolation, or pip would download torch a second time.
$(PACKAGE_STAMP): $(TORCH_STAMP) pyproject.toml setup.py
	@command -v $(firstword $(CXX)) >/dev/null || { \
		[ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && echo "== installing g++" && \
		apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq g++ >/dev/null; } || \
		{ echo "no C++ compiler found: install g++ 12 or later, or set CXX" >&2; exit 1; }
	$(SAY) "compiling the kernel and installing psal: about a minute"
	@$(PIP) install --no-build-isolation --editable '.[dev]'
	@touch $@

# pip has just compiled it where the package was just installed; a changed source is compiled in place.
$(KERNEL): $(PACKAGE_STAMP) $(SOURCES)
	@if [ -z "$(filter $(PACKAGE_STAMP),$?)" ] || [ ! -e $@ ]; then \
		printf '\n== %s\n' "compiling the kernel"; $(BIN)/python setup.py --quiet build_ext --inplace; fi
	@touch $@

$(CHROMIUM):
	@{ [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && echo "== installing chromium" && \
		apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq chromium >/dev/null; } || \
		{ echo "the tests of psal app need $(CHROMIUM): on Debian, apt-get install chromium" >&2; exit 1; }

# psal itself is there already, so that pip only adds the extra's packages.
$(BENCH_STAMP): $(PACKAGE_STAMP)
	$(SAY) "installing what the benchmark compares with"
	@$(PIP) install 'psal[compare]'
	@touch $@

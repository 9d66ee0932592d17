# The project's commands. Each does its own set-up: a virtual environment in .venv, made anew when pyproject.toml changes.
# `make crawl` brings what a crawl needs, the others what tests and benchmarks need as well.
#
#   make crawl        the main job: SEEDS="http://a.example/ ..." or SEEDS=file; CONTACT=<your page or mail address>,
#                     without which no public address is asked; ARGS="-s NAME=VALUE ..." for scrapy; FRESH=1 begins
#                     a finished crawl anew; without SEEDS a small web of its own, offline
#   make test         the tests: no root, nothing but this machine
#   make test-long    the tests that take longest for what they ask, which make test leaves out
#   make check        the gate for every change: ruff, mypy, nothing unused, the tests
#   make check-system crawls of real pages from a real nginx; installs what it needs, which takes root
#   make test-fault   the long tests that kill and damage at random, and search for inputs that cost too much
#   make chaos        300 faults of every kind in crawls of three machines; 45 minutes; takes root
#   make test-scrapy-suite   Scrapy's own tests with bigcrawl in each crawler, against a run without; 20 minutes
#   make test-plugins spiders with real plug-ins of Scrapy, on stock Scrapy, on bigcrawl, and killed; installs Chromium,
#                     which takes root; five minutes
#   make bench        bigcrawl against Scrapy and scrapy-redis, on an idle machine of two cores: 20 minutes
#   make bench-paired ARGS=COMMIT   CPU a page today and at that commit, both crawling at the same moment; 10 minutes
#   make bench-NAME   one of the other benchmarks; benchmarks/README.md lists them
#   make docs         the reference pages, written from the tables of settings, stats, keys and commands
#   make dist         source archive and wheel in dist/, each tried in an empty environment
#
# CONTRIBUTING.md has the rest: pictures, test-all, test-pythons, test-scrapy, test-hostile, lint, unused, coverage, mutation, site.
#
# PYTHON chooses the interpreter of a new environment, TESTS and PYTEST_ARGS what pytest runs. `make test` runs eight files
# of tests at a time, because most of a crawl's test is waiting, and others among the crawls; WORKERS= runs one by one.

PYTHON ?= python3
VENV ?= .venv
TESTS ?=
WORKERS ?= -n 8 --dist loadfile --no-loadscope-reorder
PYTEST_ARGS ?=
PYTHONS ?=
EXTRAS ?= dev
SEEDS ?=
CONTACT ?=
MODULES ?=
ARGS ?=
FRESH ?=

PY := $(VENV)/bin/python
STAMP := $(VENV)/.installed
CRAWL_STAMP := $(VENV)/.installed-crawl
SYSTEM_STAMP := $(VENV)/.installed-system
# Few modules of the packages are ever imported: each is compiled by the first process that imports it.
INSTALL := -m pip install -qq --disable-pip-version-check --no-compile --editable
CORPORA := build/corpora

# Compiled once rather than by each process, whatever the environment says; git ignores it.
unexport PYTHONDONTWRITEBYTECODE

.DELETE_ON_ERROR:
.PHONY: help venv crawl test test-long test-all test-pythons check lint check-system test-fault test-hostile mutation clean
.PHONY: bench

help:
	@sed -n 's/^#   //p' Makefile

venv: $(STAMP)

# One call of pip each: a second one would build the package and look all others up again.
$(STAMP): pyproject.toml setup.py bigcrawl/scan/compiled.c
	@$(call new_environment,all that tests and benchmarks need)
	@$(PY) $(INSTALL) '.[$(EXTRAS)]'
	@touch $(CRAWL_STAMP) $@ $(if $(findstring system,$(EXTRAS)),$(SYSTEM_STAMP))

# What the system checks need besides: half as much again, which no test without the mark asks for.
$(SYSTEM_STAMP): $(STAMP)
	@echo "Adding to $(VENV) what the system checks need (once)"
	@$(PY) $(INSTALL) '.[system]'
	@touch $@

$(CRAWL_STAMP): pyproject.toml setup.py bigcrawl/scan/compiled.c
	@$(call new_environment,what a crawl needs)
	@$(PY) $(INSTALL) '.[embedded,fast]'
	@touch $@

# Make it, unless the interpreter is too old, or cannot: of what, for whoever waits. The pip that Python 3.11 brings takes
# twice as long as the latest, and does where that cannot be had.
define new_environment
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || \
	    { echo "$(PYTHON) is not Python 3.11 or later: make $(MAKECMDGOALS) PYTHON=/path/to/python3.11" >&2; exit 1; }; \
	$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || \
	    { echo "$(PYTHON) cannot make virtual environments: apt-get install python3-venv" >&2; exit 1; }; \
	echo "Setting up $(VENV) with $(1) (once)"; \
	$(PYTHON) -m venv $(VENV) && \
	{ $(PY) -m pip install -qq --disable-pip-version-check --no-compile --upgrade pip || true; }
endef

crawl: $(CRAWL_STAMP)
	@$(PY) -m bigcrawl.main_job --seeds "$(SEEDS)" --contact "$(CONTACT)" $(if $(FRESH),--fresh) -- $(ARGS)

# pytest rewrites the asserts of each test file once and keeps the outcome, as Python does with each module that it compiles.
# In a new checkout each worker would do it for all of them: one process does it before.
REWRITTEN := tests/__pycache__/.rewritten
.PHONY: rewritten
rewritten: $(REWRITTEN)

$(REWRITTEN): $(STAMP)
	@$(PY) -m pytest --collect-only -qq >/dev/null || true
	@mkdir -p $(@D) && touch $@

# Tests sync tens of thousands of files, and ask nothing of the disk that these lie on.
IN_MEMORY := TMPDIR=$$(scripts/temporary)

test: $(STAMP) $(REWRITTEN)
	@$(IN_MEMORY) $(PY) -m pytest -q $(WORKERS) $(PYTEST_ARGS) $(TESTS)

# The files that have any: a worker need not collect the others.
LONG_TESTS = $(shell grep -rl 'mark\.long' tests --include='test_*.py')
test-long: $(STAMP) $(REWRITTEN)
	@$(IN_MEMORY) $(PY) -m pytest -q -m long $(WORKERS) $(PYTEST_ARGS) $(or $(TESTS),$(LONG_TESTS))

# What pyproject.toml leaves out, with the long ones.
WITH_LONG := -m "not benchmark and not system and not fault"
test-all: $(STAMP) $(REWRITTEN)
	@$(IN_MEMORY) $(PY) -m pytest -q $(WITH_LONG) $(WORKERS) $(PYTEST_ARGS) $(TESTS)

lint: $(STAMP)
	@$(PY) -m ruff check --quiet .
	@$(PY) -m ruff format --quiet --check . || { echo "run: $(PY) -m ruff format ." >&2; exit 1; }
	@$(PY) -m mypy --no-error-summary

# All are tried, and one that is missing or fails makes the target fail.
# Those that run a spider beside stock Scrapy, and those of what stock Scrapy does not have.
SIDE_BY_SIDE := tests/integration/stock tests/integration/test_schemes.py tests/integration/test_import_from.py \
	tests/integration/processes/test_other_arguments.py tests/integration/watching/test_settings_in_force.py

test-pythons:
	@test -n "$(PYTHONS)" || { echo 'say which: make test-pythons PYTHONS="python3.12 python3.13"' >&2; exit 1; }
	@failed=; for python in $(PYTHONS); do \
	    echo "== $$python"; \
	    $(MAKE) --no-print-directory test-all PYTHON=$$python VENV=.venvs/$$(echo $$python | tr / _) \
	        TESTS="$(or $(TESTS),tests/unit $(SIDE_BY_SIDE))" || failed="$$failed $$python"; \
	done; test -z "$$failed" || { echo "failed on:$$failed" >&2; exit 1; }

check: lint unused test

# What check-system runs against; a second call finds it there.
.PHONY: system
system:
	@scripts/install_system
	@scripts/fetch_corpora $(CORPORA)
	@scripts/install_pywb build/pywb $(PYTHON)
	@scripts/install_wacz build/wacz $(PYTHON)
	@scripts/install_axe

# Crawls wait most of the time, and Debian's redis-server is tried meanwhile. Each target's output is shown at its end.
.PHONY: system-redis system-crawls
check-system: $(SYSTEM_STAMP) $(REWRITTEN) system
	@$(MAKE) --no-print-directory -j 2 --output-sync=target system-crawls system-redis

# What asks a Redis; the others there are about stores, and about the text of scripts.
system-redis: $(STAMP) $(REWRITTEN)
	@$(IN_MEMORY) BIGCRAWL_TEST_REDIS_BINARY=$$(command -v redis-server) \
	    $(PY) -m pytest -q $(WITH_LONG) -n 2 --dist loadfile $(PYTEST_ARGS) \
	    --ignore=tests/contract/test_store.py --ignore=tests/contract/test_whole_files.py \
	    --ignore=tests/unit/redisdb/test_lua_contract.py \
	    tests/contract tests/unit/redisdb tests/property/test_frontier_machine.py

# The files outside of tests/system that have any.
SYSTEM_TESTS = tests/system $(shell grep -rl 'mark\.system' tests/unit tests/integration tests/annexes --include='test_*.py')
system-crawls: $(SYSTEM_STAMP) $(REWRITTEN)
	@$(PY) -m pytest -q -m "system and not fault" -n 4 --dist loadgroup --no-loadscope-reorder $(PYTEST_ARGS) $(or $(TESTS),$(SYSTEM_TESTS))

test-hostile: $(SYSTEM_STAMP)
	@scripts/install_system
	@scripts/fetch_corpora $(CORPORA)
	@BIGCRAWL_TEST_HOSTS=350 BIGCRAWL_TEST_KILLS=20 \
	    $(PY) -m pytest -q -m system $(PYTEST_ARGS) tests/system/test_hostile.py tests/system/test_crawl.py

.PHONY: docs site
docs: $(STAMP)
	@$(PY) -m scripts.write_docs

site: docs $(SYSTEM_STAMP)
	@$(PY) -m sphinx -W --keep-going -q -b html -d build/doctrees docs build/site
	@echo build/site/index.html

SCRAPY_TESTS := tests/unit tests/integration/scrapy_compat tests/integration/test_examples.py
.PHONY: test-scrapy
test-scrapy:
	@$(IN_MEMORY) scripts/test_scrapy $(PYTHON) $(WITH_LONG) $(WORKERS) $(PYTEST_ARGS) $(or $(TESTS),$(SCRAPY_TESTS))

.PHONY: test-scrapy-suite
test-scrapy-suite:
	@scripts/test_scrapy_suite $(PYTHON) $(TESTS)

# boto3 and pillow are what Scrapy's feeds and media pipelines take for S3 and images.
PLUGINS := scrapy-poet scrapy-impersonate scrapy-playwright scrapy-curl-cffi 'scrapy-zyte-api[provider]' scrapy-rotating-proxies
PLUGINS += spidermon scrapy-download-handlers-incubator boto3 pillow
.PHONY: test-plugins
test-plugins: $(STAMP)
	@scripts/install_system chromium
	@test -x .venvs/plugins/bin/python || $(PYTHON) -m venv .venvs/plugins
	@.venvs/plugins/bin/python $(INSTALL) '.[embedded,fast]' $(PLUGINS)
	@$(IN_MEMORY) BIGCRAWL_PLUGINS_PYTHON=$(CURDIR)/.venvs/plugins/bin/python \
	    $(PY) -m pytest -q -n 3 $(PYTEST_ARGS) $(or $(TESTS),tests/plugins)

# Pictures of dashboard and report in build/pictures, three of them in docs; what is wrong with their layout is printed.
.PHONY: pictures
pictures: $(SYSTEM_STAMP)
	@scripts/install_system chromium chromium-driver
	@scripts/install_axe
	@$(PY) -m scripts.draw_terminal
	@$(PY) -m scripts.take_pictures $(ARGS)

# A copy of the tree whose reader of links in C checks each access to memory, and each sum. Python's own leaks are not asked for.
SANITIZED := build/sanitized
LINK_TESTS := tests/unit/scan tests/unit/test_markup.py tests/unit/links tests/unit/url tests/property/test_canonical.py
.PHONY: sanitize
sanitize: $(STAMP)
	@rm -rf $(SANITIZED) && mkdir -p $(SANITIZED)
	@git ls-files -z bigcrawl annexes tests pyproject.toml setup.py README.md LICENSE | xargs -0 cp --parents -t $(SANITIZED)
	@cd $(SANITIZED) && CFLAGS="-O1 -g -fsanitize=address,undefined -fno-sanitize-recover=all" \
	    $(abspath $(PY)) setup.py -q build_ext --inplace
	@cd $(SANITIZED) && export ASAN_OPTIONS=detect_leaks=0 PYTHONMALLOC=malloc \
	    LD_PRELOAD="$$(gcc -print-file-name=libasan.so) $$(gcc -print-file-name=libubsan.so)" && \
	    $(abspath $(PY)) -m pytest -q -p no:cacheprovider $(LINK_TESTS) $(PYTEST_ARGS) && \
	    $(abspath $(PY)) -m tests.support.running.twins $(or $(SECONDS),120)

.PHONY: unused coverage
unused: $(STAMP)
	@$(PY) -m vulture

coverage: $(STAMP)
	@rm -rf build/coverage && mkdir -p build/coverage
	@$(PY) -m coverage run -m pytest -q $(WITH_LONG) $(WORKERS) $(PYTEST_ARGS) $(TESTS) || touch build/coverage/failed
	@$(PY) -m coverage combine --quiet
	@$(PY) -m coverage html --quiet
	@$(PY) -m coverage report --format=total | sed 's/$$/ % of lines and branches: build\/coverage\/html\/index.html/'
	@test ! -e build/coverage/failed

.PHONY: dist
dist: $(STAMP)
	@rm -rf dist build/lib
	@$(PY) -m build --outdir dist . >/dev/null
	@scripts/try_dist $(PYTHON) dist/*

# What chooses its examples by tests/support/sizes.py.
SIZED_TESTS := tests/property tests/unit/scheduler/crawl/test_assignment.py tests/unit/scheduler/partition/fold/test_ends.py
# Crawls that are killed wait most of the time: four files at a time end in the hour that the longest one takes alone.
FAULT_WORKERS ?= -n 4 --dist loadfile --no-loadscope-reorder -o faulthandler_timeout=0
test-fault: $(SYSTEM_STAMP)
	@$(PY) -m pytest -q -m "fault and not system" $(FAULT_WORKERS) $(PYTEST_ARGS) $(TESTS)
	@$(PY) -m pytest -q --hypothesis-profile=large $(WITH_LONG) $(FAULT_WORKERS) $(PYTEST_ARGS) $(or $(TESTS),$(SIZED_TESTS))

.PHONY: chaos
chaos: $(SYSTEM_STAMP)
	@test "$$(id -u)" = 0 || { echo "make chaos takes root: its machines are mount namespaces" >&2; exit 1; }
	@$(IN_MEMORY) BIGCRAWL_TEST_FAULTS=$${BIGCRAWL_TEST_FAULTS:-300} $(PY) -m pytest -q -m fault -o faulthandler_timeout=0 $(PYTEST_ARGS) tests/fault/test_chaos.py

# pyproject.toml says which modules and tests; MODULES is a pattern of names, such as bigcrawl.url.key.*
mutation: $(STAMP)
	@$(PY) -m pip install -qq --disable-pip-version-check 'mutmut>=3.8'
	@mkdir -p build
	@$(IN_MEMORY) $(PY) -m mutmut run --max-children 2 $(MODULES) >build/mutants.log || { tail -c 2000 build/mutants.log >&2; exit 1; }
	@$(PY) -m mutmut results

bench: $(STAMP)
	@$(PY) -m benchmarks.crawl $(ARGS)

# These show pages in a browser, or read tables.
bench-watching bench-page_table bench-rendering bench-replay: $(SYSTEM_STAMP)
bench-replay: replay-tools
.PHONY: replay-tools
replay-tools:
	@scripts/install_system chromium chromium-driver fonts-dejavu-core
	@scripts/install_pywb build/pywb $(PYTHON)
	@scripts/install_wacz build/wacz $(PYTHON)

# benchmarks/README.md lists them.
bench-%: $(STAMP)
	@$(PY) -m benchmarks.$* $(ARGS)

clean:
	@rm -rf $(VENV) .venvs build dist mutants bigcrawl.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis

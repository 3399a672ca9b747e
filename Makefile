# Everything from a clean clone, with Python >= 3.11 and make: `make demo`, `make test`.
# Another interpreter: make test PYTHON=python3.12. Arguments for pytest: make test PYTEST_ARGS='-k mariadb'.
# Packages come as pip is configured to bring them: index, certificates, constraints.

PYTHON ?= python3
# Airflow 2.11 knows Python up to 3.12.
LOWEST_PYTHON ?= $(PYTHON)
PYTEST_ARGS ?=
DEMO_ARGS ?=
# Servers of other versions: `make test-engines ENGINES=mysql-9 PYTEST_ARGS='-k privileges'`.
ENGINES ?= mariadb-11.8 mysql-9 postgres-16 postgres-17 postgres-18
BENCH_ARGS ?=
PIP_INSTALL = pip install --quiet --quiet

export PIP_DISABLE_PIP_VERSION_CHECK = 1

.PHONY: help demo demo-ui screenshots test test-lowest test-engines bench bench-readout lint docs format build clean servers
.DELETE_ON_ERROR:

help:
	@echo "make demo         see what became of what AI runs wrote, in a TYPO3 database of SQLite"
	@echo "make demo-ui      the same in Airflow's UI, until Ctrl-C"
	@echo "make screenshots  take the pictures of the docs anew"
	@echo "make test         all tests, on SQLite and on MariaDB and PostgreSQL servers of their own"
	@echo "make test-lowest  the same on the oldest Airflow and libraries that are supported"
	@echo "make test-engines the database tests on MariaDB 11.8, MySQL 9, and PostgreSQL 16, 17 and 18: ENGINES=mysql-9"
	@echo "make bench        how long a derivation takes, on sites of any size: BENCH_ARGS='--runs 100000 --engines mariadb'"
	@echo "make bench-readout  how long a readout of three years takes: BENCH_ARGS='--runs 100000 --engines sqlite'"
	@echo "make lint         style and types"
	@echo "make docs         the docs as a site, in site/"
	@echo "make format       put the code in its format"
	@echo "make build        wheel and sdist, in dist/"
	@echo "make clean        remove all that these made"

demo: .venv/demo-installed
	@.venv/bin/python -m demo.run $(DEMO_ARGS)

demo-ui: .venv/demo-installed
	@.venv/bin/python -m demo.ui

screenshots: .venv/test-installed .venv-scores/installed
	.venv/bin/python -W ignore -m demo.screenshots

test: .venv/test-installed .venv-scores/installed
	.venv/bin/python -m pytest -n auto --dist worksteal $(PYTEST_ARGS)

test-lowest: .venv-lowest/test-installed .venv-scores/installed
	.venv-lowest/bin/python -m pytest -n auto --dist worksteal $(PYTEST_ARGS)

# One after the other. What is not to be had is named, and named again at the end.
test-engines: .venv/test-installed
	@PYTHON=.venv/bin/python sh tests/install-engines.sh $(ENGINES)
	@failed= skipped= tested=; for engine in $(ENGINES); do \
	  if [ ! -e .engines/$$engine/bin ]; then skipped="$$skipped $$engine"; continue; fi; \
	  tested=1; echo "== $$engine"; \
	  .venv/bin/python -m pytest -n auto --dist worksteal --engine-server $${engine%-*}=.engines/$$engine/bin \
	    tests/database $(PYTEST_ARGS) || failed="$$failed $$engine"; \
	done; \
	[ -z "$$skipped" ] || echo "Skipped, not to be had here:$$skipped"; \
	[ -n "$$tested" ] || { echo "No engine was to be had: nothing was tested" >&2; exit 1; }; \
	[ -z "$$failed" ] || { echo "Failed on:$$failed" >&2; exit 1; }

bench: .venv/test-installed
	.venv/bin/python -W ignore -m benchmarks.measure $(BENCH_ARGS)

bench-readout: .venv/test-installed
	.venv/bin/python -W ignore -m benchmarks.readout $(BENCH_ARGS)

lint: .venv/test-installed
	.venv/bin/ruff check
	.venv/bin/ruff format --check
	.venv/bin/mypy

# Strict: a link that leads nowhere ends it. Nothing but links may name another site.
docs: .venv-docs/installed
	NO_MKDOCS_2_WARNING=1 .venv-docs/bin/mkdocs build --strict --quiet
	@! grep -rnoE '<(script|link|img|iframe)[^>]*(src|href)="?(https?:)?//[^">]*' site --include='*.html'
	@echo "The site is in site/index.html."

format: .venv/test-installed
	.venv/bin/ruff check --fix
	.venv/bin/ruff format

build: .venv/test-installed
	rm -rf dist
	.venv/bin/python -m build

clean:
	rm -rf .venv .venv-lowest .venv-scores .venv-docs .bench .demo .engines build dist site .mypy_cache .pytest_cache .ruff_cache .hypothesis

servers:
	@PYTHON=$(PYTHON) sh tests/install-servers.sh

.venv/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Python 3.11 or newer is needed; $(PYTHON) is not. Name one: make PYTHON=python3.12" >&2; exit 1; }
	$(PYTHON) -m venv --clear .venv

.venv-lowest/bin/python:
	@$(LOWEST_PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 13))' || \
	  { echo "Airflow 2.11 needs Python 3.11 or 3.12; $(LOWEST_PYTHON) is not. Name one: make LOWEST_PYTHON=python3.12" >&2; exit 1; }
	$(LOWEST_PYTHON) -m venv --clear .venv-lowest

.venv-docs/installed: pyproject.toml
	$(PYTHON) -m venv --clear .venv-docs
	.venv-docs/bin/python -m $(PIP_INSTALL) --upgrade 'pip>=25.1'
	.venv-docs/bin/python -m $(PIP_INSTALL) --group docs
	@touch $@

# Servers and clients that scores are tried with, apart from Airflow: they would change what it depends on.
.venv-scores/installed: pyproject.toml | .venv/bin/python
	.venv/bin/python -m venv --clear .venv-scores
	.venv-scores/bin/python -m $(PIP_INSTALL) --upgrade 'pip>=25.1'
	.venv-scores/bin/python -m $(PIP_INSTALL) --group scores-test
	@touch $@

.venv/demo-installed: pyproject.toml | .venv/bin/python
	@echo "Installing Airflow and this provider into .venv, for about a minute ..."
	@.venv/bin/python -m $(PIP_INSTALL) --editable '.[sqlite,readout]'
	@touch $@

# A pip that knows --group is younger than Python 3.11.
.venv/test-installed: pyproject.toml | .venv/bin/python servers
	.venv/bin/python -m $(PIP_INSTALL) --upgrade 'pip>=25.1'
	.venv/bin/python -m $(PIP_INSTALL) --editable '.[mysql,postgres,sqlite,readout,scores]' --group test --group lint
	@touch .venv/demo-installed $@

.venv-lowest/test-installed: pyproject.toml tests/lowest.py | .venv-lowest/bin/python servers
	.venv-lowest/bin/python tests/lowest.py > .venv-lowest/constraints.txt
	.venv-lowest/bin/python -m $(PIP_INSTALL) --upgrade 'pip>=25.1'
	.venv-lowest/bin/python -m $(PIP_INSTALL) --constraint .venv-lowest/constraints.txt \
	  --editable '.[mysql,postgres,sqlite,readout,scores]' --group test
	@touch $@

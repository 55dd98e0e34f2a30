# Each target does all set-up first, into $(VENV). `make` lists them.
#   make test PYTHON=python3.12        another interpreter
#   make test VENV=/tmp/venv           another place for the environment
#   make test WORKERS=8                more test processes

PYTHON  ?= python3
VENV    ?= .venv
WORKERS ?= 2
OUT     ?= demo
SITE    ?= site
DIST    ?= dist
# the time that all files of a release bear: that of its commit
EPOCH   ?= $(or $(SOURCE_DATE_EPOCH),$(shell git log -1 --format=%ct))
SHIPPED := pyproject.toml setup.py README.md LICENSE CHANGELOG.md CITATION.cff constraints.txt fedbounds bounds empirical figures

BIN   := $(VENV)/bin
PY    := $(BIN)/python
STAMP := $(VENV)/.installed
# whose claims are verified: papers with a ledger, and the reference theorems, which share one
AUDITED := $(subst _,-,$(notdir $(patsubst %/ledger.json,%,$(wildcard bounds/papers/*/ledger.json))))
PAPERS := $(filter-out references,$(AUDITED))
# bytecode is kept: where it is not, every process compiles anew what it imports, which takes longer than the import
unexport PYTHONDONTWRITEBYTECODE
# what sympy remembers of its answers: with its own thousand a proof asks again what it has just been told
export SYMPY_CACHE_SIZE ?= 20000
ONE_THREAD := OMP_NUM_THREADS=1 MKL_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1
PYTEST     := $(ONE_THREAD) $(PY) -m pytest
# each process runs neighboring tests, which share claim sets and compiled forms; an idle one takes from the other
TESTS      := $(PYTEST) -n $(WORKERS) --dist worksteal --durations=15

# the markers of tests that other targets run; without one, pytest leaves out these alone
SEPARATE   := long or notebook or wheel or browser or flower
# the stages of tests beside `make test`; tests/conftest.py says which modules belong to each
STAGES     := audit invariants figures processes pages
empty      :=
EXCEPT     ?= $(subst $(empty) $(empty), or ,$(STAGES))

# writes finished pages, which any generator can take
PREBUILD   := PYTHONPATH=docs $(PY) -m prebuild

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help install test $(addprefix test-,$(STAGES)) long race scaling gpu audit audits $(addprefix audit-,$(AUDITED)) audit-mutations audit-conditions adversary demo bench figures lint format doctest notebooks docs docs-release serve dist wheel browser flower clean

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 24

install: $(STAMP) ## the environment alone

$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
	  echo "fedbounds needs Python 3.11 or newer; '$(PYTHON)' is $$($(PYTHON) --version 2>&1 | head -n 1)." >&2; \
	  echo "Name a newer one: make $(or $(firstword $(MAKECMDGOALS)),test) PYTHON=/path/to/python3.11" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
	  echo "'$(PYTHON)' cannot make virtual environments; on Debian or Ubuntu: apt install python3-venv" >&2; exit 1; }
	@$(PY) -m pip --version >/dev/null 2>&1 || $(PYTHON) -m venv --clear $(VENV)
	$(PY) -m pip install --quiet --no-compile --disable-pip-version-check -c constraints.txt -e '.[all]'
	@touch $@

test: $(STAMP) ## the tests that take under four minutes (EXCEPT= runs those of the next five targets too)
	$(TESTS) -m "not ($(SEPARATE)$(if $(EXCEPT), or $(EXCEPT)))"

$(addprefix test-,$(STAGES)): test-%: $(STAMP)
	$(TESTS) -m $* $(MODULES)

test-audit: ## the tests that import the audit

test-invariants: ## property tests of algorithms, and of the mutants that they must catch

test-figures: ## the tests of figures, explorer and reports

test-processes: ## the tests that start processes: sweeps on workers, commands without an extra, start-up

test-pages: MODULES := tests/test_readme.py
test-pages: ## the examples of the README and of the pages

long: $(STAMP) ## the long searches and full figure sets, by hand before a release
	$(TESTS) -m long

audit: $(addprefix audit-,$(AUDITED)) ## every claim verified anew and compared with the committed ledger

$(addprefix audit-,$(AUDITED)): audit-%: $(STAMP)
	$(ONE_THREAD) $(BIN)/fedbounds audit --paper $* --no-cache --verdict unknown

audits: # the targets of `audit`, for those who run them side by side
	@echo $(addprefix audit-,$(AUDITED))

audit-mutations: $(STAMP) ## errors planted in theorem and proof, and those that no checker detects (EACH=100 of every kind)
	set -e; for paper in $(PAPERS); do $(ONE_THREAD) $(PY) -m tests.mutation.theorems $$paper $(EACH); done

audit-conditions: $(STAMP) ## who notices that a condition of a form is changed by a factor of 2, written beside the ledgers
	set -e; for paper in $(PAPERS); do $(ONE_THREAD) $(PY) -m tests.mutation.conditions $$paper; done

adversary: $(STAMP) ## the largest left/bound found of every form, searched again where it has changed (EFFORT=deep; hours)
	set -e; for paper in $(PAPERS); do $(ONE_THREAD) $(BIN)/fedbounds adversary --paper $$paper --effort $(or $(EFFORT),deep); done

demo: $(STAMP) ## generalized FedAvg against its baselines and against its theorem, in three minutes
	$(BIN)/fedbounds demo --out $(OUT)

bench: $(STAMP) ## the benchmarks, as ratios on this machine
	set -e; for race in $(patsubst benchmarks/%.py,%,$(filter-out $(patsubst %,benchmarks/%.py,gpu race scaling),$(wildcard benchmarks/*.py))); do \
	$(ONE_THREAD) $(PY) -m benchmarks.$$race; done

race: $(STAMP) ## one job against loops by hand and other simulators, each in an environment of its own (TURNS=3)
	$(ONE_THREAD) $(PY) -m benchmarks.race --turns $(or $(TURNS),3)

scaling: $(STAMP) ## what engines cost as the job grows, with fitted exponents (POINTS=file keeps what is measured)
	$(ONE_THREAD) $(PY) -m benchmarks.scaling --check --out docs/images/scaling.svg $(if $(POINTS),--points $(POINTS))

gpu: $(STAMP) ## what only a GPU can show, in ten minutes (DEVICE=cuda OUT=gpu)
	$(PY) benchmarks/gpu.py --device $(or $(DEVICE),auto) --out $(if $(filter demo,$(OUT)),gpu,$(OUT)) $(if $(TINY),--tiny)

figures: $(STAMP) ## the papers' figures, redrawn from our own runs
	set -e; for paper in $(PAPERS); do \
	$(BIN)/fedbounds figure $$paper --out docs/gallery/$$paper --workers $(WORKERS) --force; done
	$(BIN)/fedbounds figure references --out docs/gallery/references --force

lint: $(STAMP) ## ruff (lint, format) and pyright
	@status=0; set -x; $(PY) -m ruff check . || status=1; $(PY) -m ruff format --check . || status=1; \
	$(PY) -m pyright --pythonpath $(PY) || status=1; exit $$status

format: $(STAMP) ## let ruff mend what it can
	$(PY) -m ruff check --fix .
	$(PY) -m ruff format .

doctest: $(STAMP) ## the examples in the docstrings
	$(PYTEST) -p tests.conftest --doctest-modules fedbounds

notebooks: $(STAMP) ## execute the notebooks and compare what they print
	$(PYTEST) -m notebook tests/test_notebooks.py --durations=0

docs: $(STAMP) ## the site, into site/
	$(PREBUILD) $(abspath $(SITE)).pages $(VERSIONED)
	$(BIN)/zensical build --strict --config-file $(abspath $(SITE)).pages/zensical.toml
	rm -rf $(SITE) && mv $(SITE).pages/site $(SITE) && rm -rf $(SITE).pages
	PYTHONPATH=docs $(PY) -m prebuild.links $(SITE)

docs-release: $(STAMP) ## the site of this version, into site/VERSION beside those of others
	mkdir -p $(SITE)
	version=$$($(PY) -c 'from fedbounds.bounds._version import __version__; print(__version__)'); \
	$(MAKE) docs SITE=$(SITE)/$$version VERSIONED=versioned
	PYTHONPATH=docs $(PY) -m prebuild.versions $(SITE)

serve: $(STAMP) ## the site, on a local port
	$(PREBUILD) $(abspath $(SITE)).pages $(VERSIONED)
	$(BIN)/zensical serve --config-file $(abspath $(SITE)).pages/zensical.toml

dist: $(STAMP) ## wheel and source archive into dist/, byte for byte alike for all who build this commit (GNU tar)
	rm -rf $(DIST) && mkdir -p $(DIST)/source $(DIST)/packed
	tar -c --exclude=__pycache__ $(SHIPPED) | tar -x -C $(DIST)/source
	PYTHONHASHSEED=0 PYTHONPATH=$(DIST)/source $(PY) -PB -c "from fedbounds.bounds.evaluation import form_cache; from fedbounds.bounds.theory import registry; \
	[form_cache.write_compiled(paper) for paper in registry.PAPERS]"
	chmod -R u=rwX,go=rX $(DIST)/source
	umask 022; SOURCE_DATE_EPOCH=$(EPOCH) $(PY) -m build --no-isolation --outdir $(DIST) $(DIST)/source
	set -e; for archive in $(DIST)/*.tar.gz; do tar -xf $$archive -C $(DIST)/packed; \
	tar -c --sort=name --mtime=@$(EPOCH) --owner=0 --group=0 --numeric-owner --mode=u=rwX,go=rX --format=gnu -C $(DIST)/packed . | gzip -9n >$$archive; done
	rm -rf $(DIST)/source $(DIST)/packed

wheel: $(STAMP) ## build the wheel and try it in a clean environment
	$(PYTEST) -m wheel tests/test_packaging.py --durations=0

flower: $(STAMP) ## the strategies in a run of Flower, if it is installed: pip install 'flwr[simulation]'
	$(PYTEST) -m flower tests/empirical/monitoring/test_flower.py --durations=0

browser: $(STAMP) ## explorer and reports in a Chromium without a window, if one is installed
	$(PYTEST) -m browser tests/figures/explorer/test_explorer_in_browser.py tests/figures/report/test_report_in_browser.py --durations=0

clean: ## remove what is made (not the environment, nor results of sweeps)
	rm -rf build dist site site.pages *.egg-info .pytest_cache .ruff_cache .hypothesis
	find fedbounds bounds empirical figures tests benchmarks docs -name __pycache__ -prune -exec rm -rf {} + 2>/dev/null || true

# remy-farm: everything that is done to this repository, by name.

MAKEFLAGS += --no-print-directory --no-builtin-rules
# Where Python may keep no bytecode, as in many containers, each of a test run's thousands of processes
# compiles all that it imports.
unexport PYTHONDONTWRITEBYTECODE
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

VENV := .venv
VENV_PYTHON := $(VENV)/bin/python
BUILDER := $(VENV)/builder
PIP := $(VENV_PYTHON) -m pip --quiet --disable-pip-version-check
# Python compiles what it imports, which is a small part of all that is installed.
LOCKED := $(PIP) install --no-compile --require-hashes --no-deps
# In a quarter of pip's time, if there is no index that only pip's configuration knows.
UV_LOCKED := $(VENV)/bin/uv pip install --quiet --python $(VENV_PYTHON) --require-hashes --no-deps

LOCKS := $(addprefix requirements/,build.txt services.txt workers.txt ray.txt dev.txt docs.txt)
PURE_MEMBERS := proto library rpc services laboratory workers
# Folders are listed too, so that a file that is removed counts as a change.
SIMULATOR_SOURCES := $(shell find simulator/src simulator/tools simulator/python -name __pycache__ -prune -o -print) \
	simulator/CMakeLists.txt simulator/pyproject.toml
FUZZ_SECONDS := 60
BENCH_SEARCH := --seeds 1-2 --cpu-seconds 60

.PHONY: help
help:  ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-18s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: build
build:  ## Install remy-farm and remy-simulate in .venv/bin
	@$(MAKE) --jobs=2 installed

.PHONY: installed
installed: $(VENV)/.simulator
	@:

.PHONY: demo
demo: build  ## Design a RemyCC in about a minute and show what it gained
	rm -rf build/demo
	$(VENV)/bin/remy-farm design examples/demo.yaml --out build/demo
	@echo; echo "The same table beside the published ones, on 512 networks that no design draws from:"
	@$(VENV)/bin/remy-farm benchmark-search --remycc build/demo/remycc.json
	@$(VENV)/bin/remy-farm play build/demo/remycc.json --out build/demo/play.html >/dev/null
	@echo; echo "See the table at work, in any browser: build/demo/play.html"

.PHONY: live-page
live-page: build  ## Build the live network anew (needs npm; its files are in the repository)
	cd play && npm ci --silent --no-audit --no-fund
	$(VENV_PYTHON) -c "import ziglang" 2>/dev/null || $(PIP) install ziglang==0.17.1
	$(VENV_PYTHON) scripts/live_page.py

.PHONY: farm
farm: build  ## Run a farm here until Ctrl-C: coordinator, Redis, two workers, Prometheus
	@scripts/bootstrap farm >/dev/null
	@exec $(VENV_PYTHON) scripts/farm.py

.PHONY: test
test: build  ## Run everything that CI runs: lint, C++ tests (plain, sanitized), Python tests
	@scripts/bootstrap test >/dev/null
	@scripts/install_helm
	@$(VENV_PYTHON) scripts/check.py

.PHONY: soak
soak: build  ## Run the tests of faults with many more faults than make test does
	@scripts/bootstrap test >/dev/null
	REMY_SOAK=1 $(VENV)/bin/pytest -q tests/service tests/fleet

.PHONY: wheels-alone
wheels-alone: build  ## Run each member's tests where only its wheel and what that declares is installed
	@$(VENV_PYTHON) scripts/wheels_alone.py

.PHONY: nightly
nightly: build  ## Run what takes hours: soak, long fuzzing, wheels alone, arm64, Linux, images twice (scripts/nightly)
	@scripts/nightly

.PHONY: lint
lint: build  ## Check formatting, types, imports and wire formats
	@$(VENV_PYTHON) scripts/check.py --only lint

.PHONY: format
format: build  ## Format the Python and C++ sources
	$(VENV)/bin/ruff check --fix --quiet .
	$(VENV)/bin/ruff format .
	git ls-files --cached --others --exclude-standard 'simulator/*.h' 'simulator/*.cc' | xargs $(VENV)/bin/clang-format -i

.PHONY: docs
docs: $(VENV)/.requirements  ## Build the documents as a site in build/site; dead links are errors
	$(VENV_PYTHON) -m scripts.build_site

.PHONY: diagrams
diagrams: $(VENV)/.requirements  ## Draw the diagrams of the documents for the site (needs npm and Chromium)
	$(VENV_PYTHON) -m scripts.draw_diagrams

.PHONY: bench
bench: build  ## Measure cost, speed-up and memory (docs/results/benchmarks.md says how)
	@scripts/bootstrap bench >/dev/null
	$(VENV_PYTHON) -m benchmarks

.PHONY: bench-search
bench-search: build  ## Measure the search beside the published RemyCCs (docs/reference/command-line.md)
	rm -rf build/bench-search
	$(VENV)/bin/remy-farm benchmark-search $(BENCH_SEARCH) --out build/bench-search

.PHONY: release
release: build  ## Write wheels, chart, images (by BUILD_IMAGE) and checksums into dist
	@scripts/install_helm
	@rm -rf dist
	@scripts/release

.PHONY: arm64
arm64: build  ## Compare simulations and designs on arm64, emulated, with this machine
	@scripts/compare_arm64

.PHONY: fuzz
fuzz: build  ## Fuzz the readers of files for FUZZ_SECONDS each, starting from the corpus
	@scripts/bootstrap fuzz >/dev/null
	FUZZ_SECONDS=$(FUZZ_SECONDS) scripts/fuzz

.PHONY: proto
proto: $(VENV)/.requirements  ## Write the Python code of proto/remy_farm anew, and the schemas of files and of DesignJobs
	$(VENV_PYTHON) scripts/generate_proto.py
	$(VENV_PYTHON) -m scripts.design_job_crd
	$(VENV_PYTHON) -m scripts.json_schema

.PHONY: dashboards
dashboards: $(VENV)/.members  ## Write the Grafana dashboards anew (the chart holds them)
	$(VENV_PYTHON) -m dashboards

.PHONY: chart
chart: $(VENV)/.members  ## Write the chart's schema of values, and their table, anew
	$(VENV_PYTHON) scripts/chart.py

.PHONY: dashboard-schema
dashboard-schema:  ## Write dashboards/schema/dashboard.schema.json anew from Grafana's types (needs npm)
	npm ci --silent --prefix dashboards/schema
	npm run --silent --prefix dashboards/schema schema

.PHONY: dashboard-pictures
dashboard-pictures: build  ## Draw docs/images/dashboard-*.png from an hour of a small farm with faults
	@scripts/bootstrap test >/dev/null
	$(VENV_PYTHON) -m tests.observability.draw_dashboards

.PHONY: check-proto
check-proto: $(VENV)/.requirements  ## Fail if that code is stale
	$(VENV_PYTHON) scripts/generate_proto.py --check

.PHONY: proto-baseline
proto-baseline: $(VENV)/.requirements  ## Promise the present wire formats: at a release, or for a break that is meant
	$(VENV)/bin/buf build proto --exclude-source-info -o proto/baseline.binpb

.PHONY: lock
lock: $(VENV)/.requirements  ## Write requirements/*.txt anew from what the members ask for
	scripts/lock

.PHONY: clean
clean:  ## Remove everything that make leaves behind
	rm -rf $(VENV) build dist simulator/build .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -prune -exec rm -rf {} +

$(VENV_PYTHON):
	@python=$$(scripts/bootstrap build) && "$$python" -m venv $(VENV)

$(VENV)/.build-requirements: requirements/build.txt | $(VENV_PYTHON)
	$(LOCKED) -r requirements/build.txt
	@touch $@

$(VENV)/.requirements: $(LOCKS) | $(VENV)/.build-requirements
	$(UV_LOCKED) $(addprefix -r ,$(LOCKS)) || $(LOCKED) $(addprefix -r ,$(LOCKS))
	@touch $@

# Sources are used in place; only what the pyproject.toml files say is installed.
$(VENV)/.members: $(VENV)/.requirements $(PURE_MEMBERS:%=%/pyproject.toml)
	$(PIP) install --no-index --no-deps --no-build-isolation $(PURE_MEMBERS:%=--editable ./%)
	@touch $@

# The simulator is compiled while the others' requirements are installed: in an environment of its own, for
# in theirs its builder could import a numpy of which only half is there.
$(BUILDER)/.requirements: requirements/build.txt | $(VENV)/.build-requirements
	$(VENV_PYTHON) -m venv --clear --without-pip $(BUILDER)
	$(VENV)/bin/uv pip install --quiet --python $(BUILDER)/bin/python --require-hashes --no-deps -r $< \
		|| $(PIP) --python $(BUILDER)/bin/python install --no-compile --require-hashes --no-deps -r $<
	@touch $@

$(VENV)/.simulator-wheel: $(BUILDER)/.requirements $(SIMULATOR_SOURCES)
	@rm -rf $(VENV)/wheel
	PATH="$(CURDIR)/$(BUILDER)/bin:$$PATH" $(PIP) --python $(BUILDER)/bin/python wheel \
		--no-index --no-deps --no-build-isolation --wheel-dir $(VENV)/wheel ./simulator
	@touch $@

$(VENV)/.simulator: $(VENV)/.members $(VENV)/.simulator-wheel
	$(PIP) install --no-index --no-deps --force-reinstall $(VENV)/wheel/*.whl
	@touch $@

# remy-farm: builds, checks and releases this repository. `make` lists the targets.

MAKEFLAGS += --no-print-directory --no-builtin-rules
# Many containers set PYTHONDONTWRITEBYTECODE. Then each of a test run's thousands of processes would
# compile all modules that it imports.
unexport PYTHONDONTWRITEBYTECODE
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

VENV := .venv
VENV_PYTHON := $(VENV)/bin/python
BUILDER := $(VENV)/builder
PIP := $(VENV_PYTHON) -m pip --quiet --disable-pip-version-check
# Compiling all installed modules takes longer than compiling the few that are imported, on import.
LOCKED := install --no-compile --require-hashes --no-deps
# uv takes a quarter of pip's time, but fails if the index is only in pip's configuration.
UV := $(VENV)/bin/uv
UV_LOCKED := $(UV) pip install --quiet --require-hashes --no-deps
# Installs from this repository, without an index.
UV_LOCAL := $(UV) pip install --quiet --python $(VENV_PYTHON) --offline --no-deps --reinstall
# Make runs two recipes at once; this lets only one of them install into the environment.
ALONE := flock $(VENV)/.installing

# What the library, farms and workers import, and what builds them.
LOCKS := $(addprefix requirements/,build.txt services.txt workers.txt)
# What tests, checks and generators import in addition.
TOOL_LOCKS := $(addprefix requirements/,ray.txt dev.txt docs.txt)
PURE_MEMBERS := proto library rpc services laboratory workers
# Directories are listed too, so that removing a file triggers a rebuild.
SIMULATOR_SOURCES := $(shell find simulator/src simulator/tools simulator/python -name __pycache__ -prune -o -print) \
	simulator/CMakeLists.txt simulator/pyproject.toml
FUZZ_SECONDS := 60
BENCH_SEARCH := --seeds 1-2 --cpu-seconds 60

.PHONY: help
help:  ## List the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-19s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: build
build:  ## Install remy-farm and remy-simulate in .venv/bin
	@$(MAKE) --jobs=2 installed

.PHONY: installed
installed: $(VENV)/.simulator $(VENV)/.tools
	@:

.PHONY: demo
demo:  ## Design a RemyCC in about a minute and compare it with the published ones
	@scripts/demo

.PHONY: live-page
live-page: build  ## Rebuild the live network page (needs npm; the built files are in the repository)
	cd play && npm ci --silent --no-audit --no-fund
	$(VENV_PYTHON) -c "import ziglang" 2>/dev/null || $(PIP) install ziglang==0.17.1
	$(VENV_PYTHON) scripts/live_page.py

.PHONY: farm
farm: build  ## Run a farm on this machine until Ctrl-C: coordinator, Redis, two workers, Prometheus
	@scripts/bootstrap farm >/dev/null
	@exec $(VENV_PYTHON) scripts/farm.py

.PHONY: test
test: build  ## Run all checks of CI: lint, C++ tests (plain and sanitized), Python tests
	@scripts/bootstrap test >/dev/null
	@scripts/install_helm
	@$(VENV_PYTHON) scripts/check.py

.PHONY: soak
soak: build  ## Run the fault tests with many more faults than make test injects
	@scripts/bootstrap test >/dev/null
	REMY_SOAK=1 $(VENV)/bin/pytest -q tests/service tests/fleet

.PHONY: wheels-alone
wheels-alone: build  ## Run each member's tests with only its wheel and its declared dependencies installed
	@$(VENV_PYTHON) scripts/wheels_alone.py

.PHONY: nightly
nightly: build  ## Run the checks that take hours: soak, fuzz, wheels-alone, arm64, Linux, images (scripts/nightly)
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
docs: $(VENV)/.requirements  ## Build the documentation site in build/site; dead links are errors
	$(VENV_PYTHON) -m scripts.build_site

.PHONY: diagrams
diagrams: $(VENV)/.requirements  ## Redraw the documentation's diagrams (needs npm and Chromium)
	$(VENV_PYTHON) -m scripts.draw_diagrams

.PHONY: bench
bench: build  ## Measure cost, speed-up and memory (see docs/results/benchmarks.md)
	@scripts/bootstrap bench >/dev/null
	$(VENV_PYTHON) -m benchmarks

.PHONY: bench-search
bench-search: build  ## Compare the search with the published RemyCCs (see docs/reference/command-line.md)
	rm -rf build/bench-search
	$(VENV)/bin/remy-farm benchmark-search $(BENCH_SEARCH) --out build/bench-search

.PHONY: release
release: build  ## Write wheels, chart, images (with BUILD_IMAGE) and checksums to dist
	@scripts/install_helm
	@rm -rf dist
	@scripts/release

.PHONY: arm64
arm64: build  ## Compare simulations and designs on emulated arm64 with those of this machine
	@scripts/compare_arm64

.PHONY: fuzz
fuzz: build  ## Fuzz each file parser for FUZZ_SECONDS, starting from the corpus
	@scripts/bootstrap fuzz >/dev/null
	FUZZ_SECONDS=$(FUZZ_SECONDS) scripts/fuzz

.PHONY: proto
proto: $(VENV)/.tools  ## Regenerate the Python code of proto/remy_farm, and the schemas of files and of DesignJobs
	$(VENV_PYTHON) scripts/generate_proto.py
	$(VENV_PYTHON) -m scripts.design_job_crd
	$(VENV_PYTHON) -m scripts.json_schema

.PHONY: dashboards
dashboards: $(VENV)/.tools  ## Regenerate the Grafana dashboards, which are part of the chart
	$(VENV_PYTHON) -m dashboards

.PHONY: chart
chart: $(VENV)/.tools  ## Regenerate the schema and the table of the chart's values
	$(VENV_PYTHON) scripts/chart.py

.PHONY: dashboard-schema
dashboard-schema:  ## Regenerate dashboards/schema/dashboard.schema.json from Grafana's types (needs npm)
	npm ci --silent --prefix dashboards/schema
	npm run --silent --prefix dashboards/schema schema

.PHONY: dashboard-pictures
dashboard-pictures: build  ## Redraw docs/images/dashboard-*.png from an hour of a small farm with faults
	@scripts/bootstrap test >/dev/null
	$(VENV_PYTHON) -m tests.observability.draw_dashboards

.PHONY: check-proto
check-proto: $(VENV)/.tools  ## Fail if the code generated by make proto is out of date
	$(VENV_PYTHON) scripts/generate_proto.py --check

.PHONY: proto-baseline
proto-baseline: $(VENV)/.tools  ## Record the current wire formats as the baseline, at a release or for an intended break
	$(VENV)/bin/buf build proto --exclude-source-info -o proto/baseline.binpb

.PHONY: lock
lock: $(VENV)/.tools  ## Regenerate requirements/*.txt from the members' dependencies
	scripts/lock

.PHONY: clean
clean:  ## Remove all files that make creates
	rm -rf $(VENV) build dist simulator/build .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -prune -exec rm -rf {} +

$(VENV_PYTHON):
	@python=$$(scripts/bootstrap build) && "$$python" -m venv $(VENV)

# uv installs everything else.
$(VENV)/.uv: requirements/build.txt | $(VENV_PYTHON)
	@sed -n '/^uv==/,/[^\\]$$/p' $< >$(VENV)/uv.txt
	@$(PIP) $(LOCKED) -r $(VENV)/uv.txt
	@touch $@

$(VENV)/.requirements: $(LOCKS) | $(VENV)/.uv
	@$(ALONE) $(UV_LOCKED) --python $(VENV_PYTHON) $(LOCKS:%=-r %) || $(ALONE) $(PIP) $(LOCKED) $(LOCKS:%=-r %)
	@touch $@

# The members are installed in editable mode: again if a pyproject.toml changes, not if a source does.
$(VENV)/.members: $(VENV)/.requirements $(PURE_MEMBERS:%=%/pyproject.toml)
	@$(ALONE) $(UV_LOCAL) --no-build-isolation $(PURE_MEMBERS:%=--editable ./%)
	@touch $@

$(VENV)/.tools: $(TOOL_LOCKS) $(VENV)/.members
	@$(ALONE) $(UV_LOCKED) --python $(VENV_PYTHON) $(TOOL_LOCKS:%=-r %) \
		|| $(ALONE) $(PIP) $(LOCKED) $(TOOL_LOCKS:%=-r %)
	@touch $@

# The simulator is compiled while the other members' requirements are installed. It has its own environment,
# because in the shared one the build could import a partly installed numpy.
$(BUILDER)/.requirements: requirements/build.txt | $(VENV)/.uv
	@$(VENV_PYTHON) -m venv --clear --without-pip $(BUILDER)
	@$(UV_LOCKED) --python $(BUILDER)/bin/python -r $< || $(PIP) --python $(BUILDER)/bin/python $(LOCKED) -r $<
	@touch $@

$(VENV)/.simulator-wheel: $(BUILDER)/.requirements $(SIMULATOR_SOURCES)
	@rm -rf $(VENV)/wheel
	@PATH="$(CURDIR)/$(BUILDER)/bin:$$PATH" $(UV) build --quiet --offline --no-build-isolation \
		--python $(BUILDER)/bin/python --wheel --out-dir $(VENV)/wheel ./simulator
	@touch $@

$(VENV)/.simulator: $(VENV)/.members $(VENV)/.simulator-wheel
	@$(ALONE) $(UV_LOCAL) $(VENV)/wheel/*.whl
	@touch $@

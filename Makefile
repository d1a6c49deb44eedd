# Everything runs in .venv, made from lock files that pin every dependency by hash.
.DEFAULT_GOAL := help
PYTHON ?= python3
BIN := .venv/bin
WORKERS ?= 2
MINUTES ?= 10
EXTRAS := --extra cli --extra plot
# Lock files name everything that is needed, so pip resolves nothing: pip before 24 would trip over newer releases.
INSTALL := $(BIN)/pip install -q --disable-pip-version-check --no-deps

.PHONY: help demo tools test test-long soak coverage check bench docs lock clean

help: ## Show what can be made
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

demo: .venv/demo ## Set up and ask 1,460 questions about a year of flights
	@$(BIN)/python examples/flights.py

tools: .venv/demo ## Set up and run a ten-second session on generated data with every tool
	@$(BIN)/python examples/every_tool.py

test: .venv/dev ## Set up and run all tests
	$(BIN)/pytest -n $(WORKERS) --dist worksteal

test-long: .venv/dev ## Run all tests with every loop at its full length; takes an hour or so
	TARGETCHARGE_LONG=1 $(BIN)/pytest -n $(WORKERS) --dist worksteal

soak: .venv/dev ## Kill, race, restore and compare at random for MINUTES=10, and print what was found
	$(BIN)/python -m tests.soak $(MINUTES)

coverage: .venv/dev ## Run all tests and print the lines that none of them reaches; takes twice as long
	$(BIN)/pytest -n $(WORKERS) --cov --cov-report=term

check: .venv/dev ## Lint, format, types, layers, every example in the docs, and every call on every meter
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/pytest -q -n $(WORKERS) --dist loadfile --doctest-modules src README.md CONTRIBUTING.md docs tests/tables/test_every_call.py

bench: .venv/dev .venv-peers/ready ## Run the benchmarks and print tables; peers run in an environment of their own
	$(BIN)/python -m benchmarks

docs: .venv/dev ## Build the documentation into site/
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo "open site/index.html"

lock: .venv/dev ## Renew the lock files (needs uv on the path)
	uv pip compile pyproject.toml $(EXTRAS) --group demo --universal --generate-hashes --no-header -q -o requirements/demo.txt
	uv pip compile pyproject.toml $(EXTRAS) --extra learning --extra sketches --group dev --universal --generate-hashes --no-header -q -o requirements/dev.txt
	uv pip compile --group peers --universal --generate-hashes --no-header -q -o requirements/peers.txt

clean: ## Remove everything that was made
	rm -rf .venv .venv-peers site out build dist .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis .coverage

.venv-peers/ready: requirements/peers.txt
	@echo "setting up .venv-peers"
	@$(PYTHON) -m venv .venv-peers
	@.venv-peers/bin/pip install -q --disable-pip-version-check --no-deps --require-hashes -r requirements/peers.txt
	@touch $@

.venv/bin/python:
	$(PYTHON) -m venv .venv

.venv/demo: requirements/demo.txt pyproject.toml | .venv/bin/python
	@test -e .venv/dev || { echo "setting up .venv (a minute or so)"; \
	  $(INSTALL) --require-hashes -r requirements/demo.txt && \
	  $(INSTALL) --no-build-isolation -e .; }
	@touch $@

.venv/dev: requirements/dev.txt pyproject.toml | .venv/bin/python
	@echo "setting up .venv for development (a few minutes)"
	@$(INSTALL) --require-hashes -r requirements/dev.txt
	@$(INSTALL) --no-build-isolation -e .
	@touch $@

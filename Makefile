# make run   sets up, writes a demo event log, runs `dbt build` on an embedded Spark and prints a summary
# make test  sets up and runs all tests
# make test-servers  the tests against a Kafka broker and a schema registry, which it fetches once
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.setup-done

export DBT_PROFILES_DIR ?= profiles

.PHONY: run test test-servers lint setup clean

run: setup
	$(BIN)/tidemark run

test: setup
	$(BIN)/python -m pytest

test-servers: setup
	$(BIN)/python -m pytest tests/servers_suite

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/sqlfluff lint models tests/dbt

setup: $(STAMP)

$(STAMP): requirements.lock requirements-java.lock pyproject.toml scripts/setup.py
	$(PYTHON) scripts/setup.py $(VENV)
	@touch $@

clean:
	rm -rf $(VENV) .tidemark target logs

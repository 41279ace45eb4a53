# make run   sets up, writes a demo event log, runs `dbt build` on an embedded Spark and prints a summary
# make test  sets up and runs the tests
# make test-long  the tests that take many dbt runs: models against a real database, sinks through crashes and restarts
# make test-servers  the tests against a Kafka broker, a schema registry, Delta and Iceberg, which it fetches once
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.setup-done

export DBT_PROFILES_DIR ?= profiles

.PHONY: run test test-long test-servers lint setup clean

run: setup
	$(BIN)/tidemark run

# Two processes, a file of tests each at a time: most of them wait for one core.
PYTEST := $(BIN)/python -m pytest -n 2 --dist loadfile

test: setup
	$(PYTEST) -m "not long"

test-long: setup
	$(PYTEST) -m long

test-servers: setup
	$(PYTEST) tests/servers_suite

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

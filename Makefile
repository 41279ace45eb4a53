# make run   sets up, writes a demo event log, runs `dbt build` on an embedded Spark and prints a summary
# make test  sets up and runs all tests
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.setup-done

export DBT_PROFILES_DIR ?= profiles

.PHONY: run test lint setup clean

run: setup
	$(BIN)/tidemark run

test: setup
	$(BIN)/python -m pytest

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

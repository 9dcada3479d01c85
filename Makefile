# One verb per task. `make demo` and `make test` work on a fresh clone: they make .venv first.

VENV    := .venv
BIN     := $(VENV)/bin
READY   := $(VENV)/.ready
SOURCES := $(wildcard src tests bench scripts)

# Tests run in two processes, a file at a time, because each process starts its own Spark; in the
# order of the folders, so that the long ones do not come last.
# For one test: make test PYTEST_ARGS="tests/unit/test_cli.py -k table"
PYTEST_ARGS ?= -n 2 --dist loadfile --no-loadscope-reorder
DEMO_ARGS   ?=
BENCH_ARGS  ?= latency pipeline

.DEFAULT_GOAL := help
.PHONY: help demo test lint format bench golden docs lock clean java

help:  ## this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# Short runs end before the JVM's second compiler pays; long-running pipelines keep it.
demo test: export WEFT_JAVA_OPTIONS ?= -XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m

demo: $(READY) java  ## the main job on the embedded default; ends by itself
	@$(BIN)/weft demo $(DEMO_ARGS)

test: $(READY) java  ## the whole test suite (PYTEST_ARGS="..." to choose)
	@$(BIN)/python -m pytest $(PYTEST_ARGS)

lint: $(READY)  ## ruff: rules and formatting
	@$(BIN)/ruff check $(SOURCES)
	@$(BIN)/ruff format --check $(SOURCES)

format: $(READY)  ## let ruff fix and format the code
	@$(BIN)/ruff check --fix $(SOURCES)
	@$(BIN)/ruff format $(SOURCES)

bench: $(READY) java  ## the experiments (BENCH_ARGS="..." to choose)
	@$(BIN)/python -m bench $(BENCH_ARGS)

golden: $(READY) java  ## write the golden files again; read the diff before you commit it
	@WEFT_GOLDEN=write $(BIN)/python -m pytest tests/golden

docs: $(READY) java  ## every link resolves, every code block runs
	@$(BIN)/python scripts/check_docs.py
	@if [ -d tests/docs ]; then $(BIN)/python -m pytest tests/docs; fi

lock: $(READY)  ## resolve requirements.lock again from pyproject.toml
	@$(BIN)/python -m uv --version >/dev/null 2>&1 || $(BIN)/python -m pip install --quiet uv
	@$(BIN)/python -m uv pip compile --universal --python-version 3.11 --all-extras \
	  --no-emit-index-url --generate-hashes -q pyproject.toml -o requirements.lock

clean:  ## remove the environment, caches and demo data
	@rm -rf $(VENV) .pytest_cache .ruff_cache .hypothesis dist build demo-warehouse spark-warehouse
	@find src tests bench scripts -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true

java:
	@scripts/check_java.sh

$(READY): requirements.lock pyproject.toml scripts/make_venv.sh
	@scripts/make_venv.sh $(VENV)
	@touch $@

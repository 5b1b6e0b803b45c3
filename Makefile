# What people run. Everything goes through .venv, which each target sets up as far as it needs it.
#   make PYTHON=python3.12 chat        with another Python
#   make chat ARGS="--user mei"        with arguments for the command

PYTHON ?= python3
ARGS ?=
BIN := .venv/bin
ifeq ($(OS),Windows_NT)
BIN := .venv/Scripts
endif

SETUP = @SETUP_GOAL=$@ $(PYTHON) requirements/install.py

.PHONY: help setup chat run test check fmt bench lock clean

help:
	@echo "make chat    talk with the companion here, in the terminal"
	@echo "make run     start the bot on every platform that has a token"
	@echo "make test    run all tests"
	@echo "make check   lint and types;  make fmt  puts the code in order"
	@echo "make bench   run the measurements"
	@echo "make setup   only set up .venv;  make clean  removes it"
	@echo "make lock    pin the newest packages (needs uv)"

setup:
	$(SETUP) --for setup
	@echo "Ready: $(BIN)/omoide"

chat:
	$(SETUP) --for chat
	@$(BIN)/omoide chat $(ARGS)

run:
	$(SETUP) --for run
	@$(BIN)/omoide run $(ARGS)

test:
	$(SETUP) --for test
	$(BIN)/python -m pytest $(ARGS)

check:
	$(SETUP) --for test
	$(BIN)/python -m ruff check .
	$(BIN)/python -m ruff format --check .
	$(BIN)/python -m mypy

fmt:
	$(SETUP) --for test
	$(BIN)/python -m ruff check --fix .
	$(BIN)/python -m ruff format .

bench:
	$(SETUP) --for test
	$(BIN)/python -m bench $(ARGS)

lock:
	@requirements/lock.sh $(ARGS)

clean:
	rm -rf .venv build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis .coverage ./*.egg-info

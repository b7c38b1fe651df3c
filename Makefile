# Two commands: make demo, make test. Everything is installed into .venv; nothing else on the machine is touched.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check -q
# The local model (1.1 GB) is fetched only where no other is named and no key is there.
OTHER_MODEL := $(strip $(OPENAI_API_KEY)$(OPENAI_BASE_URL)$(DASHSCOPE_API_KEY)$(findstring --scripted,$(DEMO_ARGS)))
ifneq ($(JUDGETREE_LLM),)
OTHER_MODEL := $(filter-out local:%,$(JUDGETREE_LLM))
endif

# Tests wait for other processes, so that four keep two cores busy. They start hundreds: without bytecode each of them would compile the whole package.
export PYTHONDONTWRITEBYTECODE =

.PHONY: demo test test-slow test-local check bench lock docs notebooks clean

demo: $(VENV)/$(if $(OTHER_MODEL),.dev,.local)
	$(BIN)/judgetree demo $(DEMO_ARGS)

test: $(VENV)/.dev
	$(BIN)/python -m pytest -n 4 --dist worksteal -m "not local_model and not slow" --ignore tests/notebooks $(PYTEST_ARGS)

test-slow: $(VENV)/.dev
	$(BIN)/python -m pytest -n 2 --dist worksteal -m "slow" --ignore tests/notebooks $(PYTEST_ARGS)

test-local: $(VENV)/.dev $(VENV)/.local
	$(BIN)/python -m pytest -m local_model $(PYTEST_ARGS)

check: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	rm -rf build && $(PIP) install --no-deps --no-build-isolation --target build/types .
	cd build/types && MYPYPATH=. $(abspath $(BIN))/python -m mypy --strict --config-file $(abspath pyproject.toml) -p judgetree
	$(BIN)/python tests/links.py README.md CHANGELOG.md CONTRIBUTING.md CODE_OF_CONDUCT.md SECURITY.md docs data deploy
	$(MAKE) docs
	$(MAKE) notebooks
	rm -rf build

docs: $(VENV)/.dev
	$(BIN)/python -m sphinx -q -W --keep-going -n -b html -d build/doctrees docs build/docs

notebooks: $(VENV)/.dev
	$(BIN)/python -m pytest -q -n 2 tests/notebooks

bench: $(VENV)/.dev
	$(BIN)/python -m benchmarks

UV_COMPILE := $(BIN)/uv pip compile pyproject.toml --universal --no-annotate --no-header --python-version 3.11
# For make, with digests: all but the local model, and what the demo needs. For pip, the same versions as constraints.
lock:
	$(PIP) install "uv>=0.9,<1"
	$(UV_COMPILE) --generate-hashes --extra dev --extra docs --extra embedders --extra eval --extra postgres --extra redis --extra server \
	  --extra telemetry --extra treequest --extra ray --extra graph --extra prebuilt \
	  -o requirements.lock
	$(UV_COMPILE) --generate-hashes --extra embedders --extra local -c requirements.lock -o requirements-local.lock
	$(UV_COMPILE) --all-extras -c requirements.lock -c requirements-local.lock -o constraints.txt

clean:
	rm -rf $(VENV) build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache

$(VENV)/bin/python:
	$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "judgetree needs Python 3.11 or newer: make PYTHON=python3.12 …")'
	$(PYTHON) -m venv $(VENV)

$(VENV)/.local: pyproject.toml requirements-local.lock | $(VENV)/bin/python
	@echo "Installing judgetree and its local model (1.1 GB) into $(VENV) …"
	$(PIP) install -r requirements-local.lock
	$(PIP) install --no-deps -e .
	@touch $@

$(VENV)/.dev: pyproject.toml requirements.lock | $(VENV)/bin/python
	@echo "Installing judgetree and its test tools into $(VENV) …"
	$(PIP) install -r requirements.lock
	$(PIP) install --no-deps -e .
	@touch $@

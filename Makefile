# All targets but help, lock, protos and clean first install the environment, if needed.
# TFX=1.16 or 1.21 chooses the lock file; see setup/environment.sh.
# Three test processes: each starts one server, which imports TFX for all nodes and commands
# of its tests, and runs whole test modules (tests/conftest.py).
TFX ?=

environment = venv=$$(setup/environment.sh $(TFX)) && set -x &&

.PHONY: help demo setup test test-unit test-acceptance lint format lock protos clean

help:
	@echo "make demo       set up, write the digits data, train, evaluate and push a model"
	@echo "make test       set up, run all tests but the long ones (acceptance)"
	@echo "make test-unit  set up, run the unit tests: milliseconds each, no TensorFlow"
	@echo "make test-acceptance   set up, run the long tests: whole pipelines, TFX's examples"
	@echo "make lint       set up, check format, lint, types and package layers"
	@echo "make format     set up, format the code, apply automatic lint fixes"
	@echo "make setup      set up only"
	@echo "make lock       resolve requirements/*.in into the lock files"
	@echo "make protos     regenerate sluice/tfrecords/tf_example_pb2.py"
	@echo "make clean      remove environments and caches; data/ and workspace/ stay"
	@echo "make TFX=1.16 TARGET   on TFX 1.16 (Python 3.10); 1.21 needs 3.12 and glibc 2.39"

demo:
	@$(environment) $$venv/bin/sluice data make digits && \
	$$venv/bin/sluice run digits

setup:
	@setup/environment.sh $(TFX)

test:
	@$(environment) $$venv/bin/python -m pytest -n 3 --dist loadfile \
	-m "not acceptance" --durations=25

test-acceptance:
	@$(environment) $$venv/bin/python -m pytest -n 3 --dist loadfile \
	-m acceptance --durations=25

test-unit:
	@$(environment) $$venv/bin/python -m pytest -m unit

lint:
	@$(environment) $$venv/bin/ruff format --check . && \
	$$venv/bin/ruff check . && \
	$$venv/bin/mypy && \
	$$venv/bin/lint-imports

format:
	@$(environment) $$venv/bin/ruff format . && \
	$$venv/bin/ruff check --fix .

lock:
	@setup/lock.sh

protos:
	@setup/protos.sh

clean:
	rm -rf .venv .uv build dist *.egg-info
	rm -rf .pytest_cache .hypothesis .mypy_cache .ruff_cache .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# Each target installs what it needs into .venv by itself.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Inferentia 1 ends at this Python; where it isn't installed, the machine's own has to do.
PYTHON310 ?= $(shell for python in python3.10 $(HOME)/.pyenv/versions/3.10.*/bin/python $(PYTHON); do \
  $$python -c '' 2>/dev/null && echo $$python && break; done)
# PyTorch's own index of CPU builds: on Linux the default build brings gigabytes of CUDA. Empty: the default build.
TORCH_INDEX ?= https://download.pytorch.org/whl/cpu

.PHONY: help run test test-inf1 lint fmt bench image image-check sbom tasks lock install clean

help: ## What there is
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 14

run: $(VENV)/.serve ## Serve the shipped model on http://127.0.0.1:8080
	$(BIN)/query-intent serve

test: $(VENV)/.dev ## Run the tests
	$(BIN)/python -m pytest -n auto --dist loadfile --cov --cov-report=term:skip-covered

test-inf1: $(VENV)-inf1/.dev ## Serving and Neuron tests on Inferentia 1's frozen stack (2 GB to download)
	$(VENV)-inf1/bin/python -m pytest -n auto --dist loadfile tests/app tests/standin tests/test_constraints.py \
	  tests/models/compiling/neuron tests/models/compiling/test_torchscript.py tests/models/test_compile_neuron.py

lint: $(VENV)/.dev ## Style, types and the direction of dependencies
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/hadolint Dockerfile

fmt: $(VENV)/.dev ## Format the code
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: $(VENV)/.dev ## What the service itself costs, and what latency the shipped model holds
	$(BIN)/python -m benchmarks.run

image: ## Build query-intent:cpu with docker, podman or buildah (deploy/image says more)
	deploy/image build

image-check: ## Run query-intent:cpu as ECS does, ask it a query, stop it
	deploy/image check

sbom: ## Write what is in query-intent:cpu to sbom.cdx.json, in CycloneDX
	deploy/image sbom > sbom.cdx.json

tasks: $(VENV)/.serve ## Write ecs-task.json and its variants again
	$(BIN)/python -m deploy.task_definitions

install: $(VENV)/.dev ## Everything for developing, training and compiling

pin = $(VENV)-lock/bin/uv pip compile -q --python-version $(1) --python-platform x86_64-manylinux_$(2) \
  --generate-hashes --no-annotate --no-header pyproject.toml

lock: ## Pin what is shipped, with hashes, and the servers it is compared with
	$(PYTHON) -m venv $(VENV)-lock
	$(VENV)-lock/bin/pip install -q uv
	$(VENV)-lock/bin/uv pip compile -q --universal --python-version 3.10 --generate-hashes --no-annotate --no-header \
	  --extra cpu --extra load --extra s3 pyproject.toml -o constraints/serve-cpu.txt
	$(call pin,3.10,2_31) -c constraints/inf1.txt --extra load --extra s3 --extra compile-inf1 -o constraints/compile-inf1.txt
	$(call pin,3.10,2_31) -c constraints/compile-inf1.txt --extra load --extra s3 -o constraints/serve-inf1.txt
	$(call pin,3.12,2_34) -c constraints/inf2.txt --extra load --extra s3 --extra compile-inf2 -o constraints/compile-inf2.txt
	$(call pin,3.12,2_34) -c constraints/compile-inf2.txt --extra load --extra s3 -o constraints/serve-inf2.txt
	for peer in mosec litserve; do $(VENV)-lock/bin/uv pip compile -q --universal --python-version 3.10 --no-annotate \
	  --no-header benchmarks/peers/$$peer.in -o benchmarks/peers/$$peer.txt; done
	rm -rf $(VENV)-lock

clean: ## Remove the environment and caches
	rm -rf $(VENV) $(VENV)-inf1 .pytest_cache .mypy_cache .ruff_cache .coverage *.egg-info

$(VENV)/.serve: constraints/serve-cpu.txt pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/pip install -q --require-hashes -r constraints/serve-cpu.txt
	$(BIN)/pip install -q --no-deps -e .
	touch $@

$(VENV)/.dev: $(VENV)/.serve
	$(BIN)/pip install -q --no-deps --retries 0 torch==2.13.0 $(if $(TORCH_INDEX),--extra-index-url $(TORCH_INDEX))
	$(BIN)/pip install -q -e '.[cpu,load,train,dev]'
	touch $@

$(VENV)-inf1/.dev: constraints/inf1.txt constraints/compile-inf1.txt pyproject.toml
	test -x $(@D)/bin/python || $(PYTHON310) -m venv $(@D)
	$(@D)/bin/pip install -q --require-hashes -r constraints/compile-inf1.txt
	$(@D)/bin/pip install -q --retries 0 -c constraints/inf1.txt torch $(if $(TORCH_INDEX),--extra-index-url $(TORCH_INDEX))
	$(@D)/bin/pip install -q -c constraints/inf1.txt -e '.[dev]'
	touch $@

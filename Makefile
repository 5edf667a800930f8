# Each target installs what it needs into .venv by itself.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# PyTorch's own index of CPU builds: on Linux the default build brings gigabytes of CUDA. Empty: the default build.
TORCH_INDEX ?= https://download.pytorch.org/whl/cpu

.PHONY: help run test lint fmt bench image image-check sbom tasks lock install clean

help: ## What there is
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 14

run: $(VENV)/.serve ## Serve the shipped model on http://127.0.0.1:8080
	$(BIN)/query-intent serve

test: $(VENV)/.dev ## Run the tests
	$(BIN)/python -m pytest -n auto --dist loadfile --cov --cov-report=term:skip-covered

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

lock: ## Pin what is shipped, with hashes, and the servers it is compared with
	$(PYTHON) -m venv $(VENV)-lock
	$(VENV)-lock/bin/pip install -q uv
	$(VENV)-lock/bin/uv pip compile -q --universal --python-version 3.10 --generate-hashes --no-annotate --no-header \
	  --extra cpu --extra load pyproject.toml -o constraints/serve-cpu.txt
	for peer in mosec litserve; do $(VENV)-lock/bin/uv pip compile -q --universal --python-version 3.10 --no-annotate \
	  --no-header benchmarks/peers/$$peer.in -o benchmarks/peers/$$peer.txt; done
	rm -rf $(VENV)-lock

clean: ## Remove the environment and caches
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .coverage *.egg-info

$(VENV)/.serve: constraints/serve-cpu.txt pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/pip install -q --require-hashes -r constraints/serve-cpu.txt
	$(BIN)/pip install -q --no-deps -e .
	touch $@

$(VENV)/.dev: $(VENV)/.serve
	$(BIN)/pip install -q --no-deps --retries 0 torch==2.13.0 $(if $(TORCH_INDEX),--extra-index-url $(TORCH_INDEX))
	$(BIN)/pip install -q -e '.[cpu,load,train,dev]'
	touch $@

# The service in a container, one target a kind of machine: `cpu`, which a plain `docker build .` makes, `inf2` and `inf1`.
#
#   docker build -t query-intent:cpu .
#   docker run --rm --init --read-only --tmpfs /tmp -p 8080:8080 -p 8081:8081 query-intent:cpu
#
# Bases are pinned by tag, packages by hash. Where packages come from is a build argument: PIP_INDEX_URL for the Python
# index, NEURON_PIP_REPO for AWS's own, which has the Neuron SDKs. `deploy/image` builds with version and revision.

# --- what the service needs on a CPU
FROM python:3.11-slim-bookworm AS dependencies
ARG PIP_INDEX_URL
WORKDIR /build
COPY constraints/serve-cpu.txt .
RUN python -m venv --without-pip /opt/venv \
 && pip --python /opt/venv/bin/python install --no-cache-dir --only-binary :all: --require-hashes -r serve-cpu.txt
# OpenVINO brings engines for GPUs and NPUs, and readers of other frameworks' models. Smaller is sooner on a new machine.
WORKDIR /opt/venv/lib/python3.11/site-packages/openvino
RUN rm -r include libs/cache.json libs/libopenvino_intel_[gn]pu_plugin.so \
 && find libs -name 'libopenvino_*_frontend.so.*' ! -name '*_ir_*' -delete
WORKDIR /build

# --- the list of it, with licences, in CycloneDX
FROM dependencies AS sbom
ARG PIP_INDEX_URL
COPY pyproject.toml .
RUN python -m venv /opt/cyclonedx \
 && /opt/cyclonedx/bin/pip install --no-cache-dir cyclonedx-bom==7.5.0 \
 && /opt/cyclonedx/bin/cyclonedx-py environment --pyproject pyproject.toml --output-reproducible \
      --output-format JSON --output-file sbom.cdx.json /opt/venv/bin/python

# --- the service itself, with the shipped bundle
FROM dependencies AS service
ARG PIP_INDEX_URL
COPY pyproject.toml README.md LICENSE ./
COPY app app
COPY models models
RUN pip wheel --no-cache-dir --no-deps --wheel-dir wheel . \
 && pip --python /opt/venv/bin/python install --no-cache-dir --no-deps --target /opt/query-intent wheel/*.whl

# --- cpu: Debian's Python and OpenVINO, neither compiler nor torch
FROM python:3.11-slim-bookworm AS cpu
COPY --from=dependencies /opt/venv /opt/venv
COPY --from=sbom /build/sbom.cdx.json /usr/share/query-intent/
COPY --from=service /opt/query-intent /opt/query-intent
ENV PATH=/opt/query-intent/bin:/opt/venv/bin:$PATH PYTHONPATH=/opt/query-intent PYTHONDONTWRITEBYTECODE=1 HOME=/tmp \
    QUERY_INTENT_TARGET=cpu QUERY_INTENT_HOST=0.0.0.0 QUERY_INTENT_OPS_HOST=0.0.0.0
USER 10001:10001
WORKDIR /tmp
EXPOSE 8080 8081
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s --retries=3 CMD ["python", "-m", "app.healthcheck"]
ENTRYPOINT ["query-intent"]
CMD ["serve"]
ARG VERSION=unknown
ARG REVISION=unknown
LABEL org.opencontainers.image.title="query-intent" \
      org.opencontainers.image.description="Real-time query-intent classification for a shop's search box" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.base.name="docker.io/library/python:3.11-slim-bookworm" \
      org.opencontainers.image.version="$VERSION" \
      org.opencontainers.image.revision="$REVISION"

# --- inf2: AWS's image has driver libraries, torch and torch-neuronx; a virtual environment on top keeps what it pins
FROM public.ecr.aws/neuron/pytorch-inference-neuronx:2.9.0-neuronx-py312-sdk2.31.1-ubuntu24.04 AS inf2
ARG PIP_INDEX_URL
ARG NEURON_PIP_REPO=pip.repos.neuron.amazonaws.com
WORKDIR /build
COPY constraints/inf2.txt constraints/serve-inf2.txt ./
COPY --from=service /build/wheel wheel
# The base's own SDK, if it is the one that is pinned. Without the pin PyPI's empty package of that name would do.
RUN python -m venv --system-site-packages /opt/venv \
 && /opt/venv/bin/pip install --no-cache-dir --require-hashes -r serve-inf2.txt \
 && /opt/venv/bin/pip install --no-cache-dir --no-deps --index-url "https://$NEURON_PIP_REPO" -c inf2.txt torch-neuronx \
 && /opt/venv/bin/pip install --no-cache-dir --no-deps --target /opt/query-intent wheel/*.whl
ENV PATH=/opt/query-intent/bin:/opt/venv/bin:$PATH PYTHONPATH=/opt/query-intent PYTHONDONTWRITEBYTECODE=1 HOME=/tmp \
    QUERY_INTENT_TARGET=inf2 QUERY_INTENT_HOST=0.0.0.0 QUERY_INTENT_OPS_HOST=0.0.0.0
USER 10001:10001
WORKDIR /tmp
EXPOSE 8080 8081
HEALTHCHECK --interval=10s --timeout=5s --start-period=300s --retries=3 CMD ["python", "-m", "app.healthcheck"]
ENTRYPOINT ["query-intent"]
CMD ["serve"]
ARG VERSION=unknown
ARG REVISION=unknown
LABEL org.opencontainers.image.title="query-intent" \
      org.opencontainers.image.description="Real-time query-intent classification for a shop's search box, on Inferentia 2" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.base.name="public.ecr.aws/neuron/pytorch-inference-neuronx:2.9.0-neuronx-py312-sdk2.31.1-ubuntu24.04" \
      org.opencontainers.image.version="$VERSION" \
      org.opencontainers.image.revision="$REVISION"

# --- inf1: the last image that AWS made for it; frozen, as all of Inferentia 1 is
FROM public.ecr.aws/neuron/pytorch-inference-neuron:1.13.1-neuron-py310-sdk2.20.2-ubuntu20.04 AS inf1
ARG PIP_INDEX_URL
ARG NEURON_PIP_REPO=pip.repos.neuron.amazonaws.com
WORKDIR /build
COPY constraints/inf1.txt constraints/serve-inf1.txt ./
COPY --from=service /build/wheel wheel
RUN python -m venv --system-site-packages /opt/venv \
 && /opt/venv/bin/pip install --no-cache-dir --require-hashes -r serve-inf1.txt \
 && /opt/venv/bin/pip install --no-cache-dir --no-deps --index-url "https://$NEURON_PIP_REPO" -c inf1.txt torch-neuron \
 && /opt/venv/bin/pip install --no-cache-dir --no-deps --target /opt/query-intent wheel/*.whl
ENV PATH=/opt/query-intent/bin:/opt/venv/bin:$PATH PYTHONPATH=/opt/query-intent PYTHONDONTWRITEBYTECODE=1 HOME=/tmp \
    QUERY_INTENT_TARGET=inf1 QUERY_INTENT_HOST=0.0.0.0 QUERY_INTENT_OPS_HOST=0.0.0.0
USER 10001:10001
WORKDIR /tmp
EXPOSE 8080 8081
HEALTHCHECK --interval=10s --timeout=5s --start-period=300s --retries=3 CMD ["python", "-m", "app.healthcheck"]
ENTRYPOINT ["query-intent"]
CMD ["serve"]
ARG VERSION=unknown
ARG REVISION=unknown
LABEL org.opencontainers.image.title="query-intent" \
      org.opencontainers.image.description="Real-time query-intent classification for a shop's search box, on Inferentia 1" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.base.name="public.ecr.aws/neuron/pytorch-inference-neuron:1.13.1-neuron-py310-sdk2.20.2-ubuntu20.04" \
      org.opencontainers.image.version="$VERSION" \
      org.opencontainers.image.revision="$REVISION"

# --- the last one is what a build makes that names no target
FROM cpu

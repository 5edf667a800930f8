"""Services for the tests beside it. Those that only read share one; those that kill and drain start their own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.app.service.bundles import make_null_bundle
from tests.app.service.running import RunningService

Start = Callable[..., RunningService]


@pytest.fixture(scope="session")
def null_bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_null_bundle(tmp_path_factory.mktemp("bundles") / "null")


@pytest.fixture(scope="session")
def one_bucket_bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With one bucket a slow model is warm sooner, and a long query fills a row."""
    return make_null_bundle(tmp_path_factory.mktemp("bundles") / "one-bucket", buckets=(32,))


@pytest.fixture
def start(tmp_path: Path, null_bundle: Path) -> Iterator[Start]:
    """Start a service of the test's own; it is ended with the test."""
    services: list[RunningService] = []

    def start_service(**settings: object) -> RunningService:
        folder = tmp_path / f"service-{len(services)}"
        services.append(RunningService(folder, **({"bundle": null_bundle} | settings)))
        return services[-1]

    yield start_service
    for service in services:
        service.kill()


@pytest.fixture(scope="session")
def service(tmp_path_factory: pytest.TempPathFactory, null_bundle: Path) -> Iterator[RunningService]:
    """With the default limits and a model that answers at once."""
    with RunningService(tmp_path_factory.mktemp("service"), bundle=null_bundle) as running:
        yield running.wait_ready()


@pytest.fixture(scope="session")
def strict_service(tmp_path_factory: pytest.TempPathFactory, null_bundle: Path) -> Iterator[RunningService]:
    """With low limits, so that they are soon met."""
    limits = {
        "read_timeout_s": 0.5,
        "keep_alive_s": 1,
        "max_connections": 4,
        "max_queries": 8,
        "queue_tokens": 64,
        "max_body_bytes": 512,
    }
    with RunningService(tmp_path_factory.mktemp("strict"), bundle=null_bundle, **limits) as running:
        yield running.wait_ready()


@pytest.fixture(scope="session")
def slow_service(tmp_path_factory: pytest.TempPathFactory, one_bucket_bundle: Path) -> Iterator[RunningService]:
    """One replica that takes 100 ms for a row of 32 tokens, and callers that wait for 10 s."""
    slowness = {"null_ms": 100, "replicas": 1, "timeout_ms": 10_000}
    with RunningService(tmp_path_factory.mktemp("slow"), bundle=one_bucket_bundle, **slowness) as running:
        yield running.wait_ready()

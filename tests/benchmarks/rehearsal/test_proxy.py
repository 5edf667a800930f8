"""The proxy of the rehearsal, with a real instance behind it."""

from __future__ import annotations

import shutil
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from benchmarks.rehearsal.instance import Instance
from benchmarks.rehearsal.proxy import PLACES, Proxy

pytestmark = pytest.mark.skipif(shutil.which("haproxy", path=PLACES) is None, reason="needs HAProxy")


def status(url: str) -> int:
    try:
        with urllib.request.urlopen(f"{url}/v1/model", timeout=5) as reply:
            return int(reply.status)
    except urllib.error.HTTPError as error:
        return error.code


def test_an_instance_gets_requests_while_its_operations_port_says_ready(tmp_path: Path) -> None:
    with Instance("a", target="null", workers=1, replicas=1) as instance, Proxy([instance], tmp_path) as proxy:
        proxy.wait_for(instance, "UP")
        assert [status(url) for url in (proxy.url, proxy.redispatching)] == [200, 200]
        instance.stop()
        proxy.wait_for(instance, "DOWN")
        assert [status(url) for url in (proxy.url, proxy.redispatching)] == [503, 503]
        instance.start()
        proxy.wait_for(instance, "UP")
        assert status(proxy.url) == 200
        instance.kill()
        proxy.wait_for(instance, "DOWN")

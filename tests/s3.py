"""S3 for tests: moto's server, and a bucket in it that holds bundles.

def test_…(s3: S3) -> None:
    address = s3.upload(bundle, "models/4")
    subprocess.run([…], env=os.environ | s3.env)
"""

from __future__ import annotations

import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest
from moto.server import ThreadedMotoServer

from app.bundle import MANIFEST, sha256

BUCKET = "shop-models"
# Nobody answers there: an instance's role, which is asked last, must not be found on the machine that runs the tests.
NOWHERE = "http://127.0.0.1:9"


class S3:
    def __init__(self, url: str) -> None:
        self.url = url
        self.env = {
            "AWS_ENDPOINT_URL": url,
            "AWS_REGION": "eu-west-1",
            "AWS_ACCESS_KEY_ID": "test",
            "AWS_SECRET_ACCESS_KEY": "test",
            "AWS_METADATA_ENDPOINT": NOWHERE,
        }
        self._client: Any = boto3.client(
            "s3", endpoint_url=url, region_name="eu-west-1", aws_access_key_id="test", aws_secret_access_key="test"
        )
        self._client.create_bucket(
            Bucket=BUCKET, CreateBucketConfiguration={"LocationConstraint": self.env["AWS_REGION"]}
        )

    def upload(self, bundle: Path, prefix: str) -> str:
        """Its address there."""
        for file in bundle.rglob("*"):
            if file.is_file():
                self.put(f"{prefix}/{file.relative_to(bundle).as_posix()}", file.read_bytes())
        return f"s3://{BUCKET}/{prefix}#sha256={sha256(bundle / MANIFEST)}"

    def put(self, key: str, content: bytes) -> None:
        self._client.put_object(Bucket=BUCKET, Key=key, Body=content)

    def delete(self, key: str) -> None:
        self._client.delete_object(Bucket=BUCKET, Key=key)

    def forbid(self) -> None:
        """From now on nobody has a right to anything."""
        self.tell_moto("reset-auth", b"0")

    def tell_moto(self, what: str, data: bytes = b"") -> None:
        order = urllib.request.Request(f"{self.url}/moto-api/{what}", data, {"Content-Type": "text/plain"})
        urllib.request.urlopen(order).close()


@pytest.fixture
def s3(monkeypatch: pytest.MonkeyPatch) -> Iterator[S3]:
    """Of the test's own. The test's process is set up for it, as are those that it starts."""
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    found = S3(f"http://{host}:{port}")
    for name, value in found.env.items():
        monkeypatch.setenv(name, value)
    yield found
    # Both are the process's, not the server's.
    found.tell_moto("reset-auth", b"inf")
    found.tell_moto("reset")
    server.stop()

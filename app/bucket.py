"""A bundle in an S3 bucket."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path

from obstore import get_async
from obstore.exceptions import BaseError, PermissionDeniedError, UnauthenticatedError
from obstore.store import S3Store

from app.errors import BundleError

CONNECT_S, REQUEST_S, RETRIES = 5, 60, 3
CHUNK_BYTES = 4 << 20
# By which a failure to get credentials is told from one to read: the last place in which they are looked for.
INSTANCE_CREDENTIALS = "/latest/api/token"


class Bucket:
    """Files below ``prefix`` of ``bucket``; ``address`` is what errors call the bundle.

    Credentials, region and endpoint are found as AWS's SDKs find them: in the environment, else by the task's role or
    the instance's.
    """

    def __init__(self, address: str, *, bucket: str, prefix: str, digest: str) -> None:
        self.digest: str | None = digest
        self._address = address
        endpoints = [os.environ.get(name, "") for name in ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL")]
        self._store = S3Store(
            bucket,
            prefix=prefix,
            client_options={
                "connect_timeout": timedelta(seconds=CONNECT_S),
                "timeout": timedelta(seconds=REQUEST_S),
                "allow_http": any(endpoint.startswith("http://") for endpoint in endpoints),
            },
            retry_config={"max_retries": RETRIES, "retry_timeout": timedelta(seconds=REQUEST_S)},
        )

    async def fetch(self, name: str, into: Path) -> None:
        with into.open("wb") as file:
            async with self._named(name):
                reply = await get_async(self._store, name)
                chunks = aiter(reply.stream(min_chunk_size=CHUNK_BYTES))
            while True:
                async with self._named(name):
                    chunk = await anext(chunks, None)
                if chunk is None:
                    return
                file.write(chunk)

    @asynccontextmanager
    async def _named(self, name: str) -> AsyncIterator[None]:
        """Turn what goes wrong with the bucket into an error that names bundle and file."""
        try:
            yield
        except FileNotFoundError as error:
            problem = f"there is no {name}: {_first_line(error)}"
        except (PermissionDeniedError, UnauthenticatedError) as error:
            problem = f"may not read {name}, which takes s3:GetObject (in its own region): {_first_line(error)}"
        except BaseError as error:
            problem = f"{name} can't be read: {_first_line(error)}"
            if INSTANCE_CREDENTIALS in str(error):
                problem = (
                    f"no credentials: none in the environment, no role of a task or an instance: {_first_line(error)}"
                )
        else:
            return
        raise BundleError(f"bundle {self._address}: {problem}")


def _first_line(error: Exception) -> str:
    """What follows is the library's inside."""
    return str(error).split("\n", 1)[0]
